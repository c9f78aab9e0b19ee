// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// A cluster may have any number of RuntimeClasses for which it has no node now. Whoever waited
// for one after the other would be ended before he could report.
func TestRuntimeClassesWithoutNodesHaveTheTimeOfOne(t *testing.T) {
	const classes = 7
	synctest.Test(t, func(t *testing.T) {
		c := fake.NewClientBuilder().Build()
		for i := range classes {
			class := &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("class-%d", i)}, Handler: "h"}
			if err := c.Create(t.Context(), class); err != nil {
				t.Fatal(err)
			}
		}
		r, found := runner{client: c, options: Options{Namespace: "release", Image: "webhook"}}, map[string]string{}
		pods, err := r.startClasses(t.Context(), found)
		if err != nil {
			t.Fatal(err)
		}
		watch := clock.RealClock{}
		begun := watch.Now()
		if err := r.awaitClasses(t.Context(), pods, found); err != nil {
			t.Fatal(err)
		}
		if took := watch.Since(begun); took != patience {
			t.Errorf("it took %s, want %s", took, patience)
		}
		for i := range classes {
			if why := found[fmt.Sprintf("class-%d", i)]; !strings.Contains(why, "its Pod is still") {
				t.Errorf("class %d: %q", i, why)
			}
		}
	})
}

// The Pod that both probes ask must be there until the last of them has asked.
func TestTheServerOutlivesThoseThatAskIt(t *testing.T) {
	life := func(role string) int64 { return *Options{}.pod(role, "").Spec.ActiveDeadlineSeconds }
	for _, role := range []string{roleOpen, roleDenied, roleAgain, roleClass} {
		if asks := life(role); life(roleServer) < 3*asks {
			t.Errorf("the server lives %d seconds, a Pod %s %d", life(roleServer), role, asks)
		}
	}
}
