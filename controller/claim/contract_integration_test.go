// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package claim

import (
	"errors"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	dto "github.com/prometheus/client_model/go"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
)

// events lists the Events of claims as "type reason/action: note", sorted.
func (e *environment) events() []string {
	e.Helper()
	var list eventsv1.EventList
	if err := e.Client.List(e.Context(), &list, client.InNamespace(e.Namespace)); err != nil {
		e.Fatal(err)
	}
	told := []string{}
	for i := range list.Items {
		if event := &list.Items[i]; event.Regarding.Kind == extensionsv1beta1.SandboxClaimKind {
			told = append(told, fmt.Sprintf("%s %s/%s: %s", event.Type, event.Reason, event.Action, event.Note))
		}
	}
	slices.Sort(told)
	return told
}

func TestEventsOfClaims(t *testing.T) {
	t.Parallel()
	ends := withLifecycle(extensionsv1beta1.ClaimLifecycle{ShutdownPolicy: extensionsv1beta1.ClaimShutdownPolicyDelete})
	missing := "Warning SandboxMissing/Reconciling: The Sandbox of the claim was deleted, and with it what ran there. " +
		"Delete the claim and make a new one."
	cases := map[string]struct {
		quiet bool
		want  []string
	}{
		"all of them": {false, []string{
			"Normal ClaimExpired/Claim Expired: Claim expired",
			"Normal ClaimExpired/Deleting: Deleting Claim (ShutdownPolicy=Delete)",
			`Normal SandboxAdopted/Adoption: Adopted warm pool Sandbox "pool-1"`,
			`Normal SandboxProvisioned/Provisioning: Created Sandbox "cold"`,
			missing,
		}},
		"warnings only": {true, []string{missing}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEnvironment(t, func(e *environment) { e.setting.NoEvents, e.setting.ColdStartAfter = tc.quiet, 0 })
			stock := e.bound()
			e.Delete(stock.member("pool-1"))
			e.says(saysMissing)
			e.Create(makeClaim("cold", ends))
			e.Eventually("the second claim starts cold", func() error {
				if got := e.claim("cold").Status.SandboxStatus.Name; got != "cold" {
					return errors.New(got)
				}
				return nil
			})
			past := metav1.NewTime(e.Clock.Now().Add(-time.Second))
			e.edit("cold", func(c *extensionsv1beta1.SandboxClaim) { c.Spec.Lifecycle.ShutdownTime = &past })
			e.Gone("cold", &extensionsv1beta1.SandboxClaim{})
			e.Eventually("the Events are there", func() error {
				if diff := cmp.Diff(tc.want, e.events()); diff != "" {
					return fmt.Errorf("(-want +got):\n%s", diff)
				}
				return nil
			})
		})
	}
}

func TestWithoutTimesAClaimNamesItsSandboxOnly(t *testing.T) {
	t.Parallel()
	e := newEnvironment(t, func(e *environment) { e.setting.NoTimes = true })
	e.bound()
	if diff := cmp.Diff(map[string]string{keys.SandboxName: "pool-1"}, e.claim("claim").Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
}

// Early releases named the Sandbox in a label.
func TestTheLabelThatNamesTheSandboxBecomesAnAnnotation(t *testing.T) {
	t.Parallel()
	e := newEnvironment(t)
	stock := e.pool()
	stock.add("pool-1")
	stock.add("pool-2")
	stock.offers(2, 2)
	e.Create(makeClaim("claim", func(c *extensionsv1beta1.SandboxClaim) {
		c.Labels = map[string]string{keys.SandboxName: "pool-2", "team": "blue"}
	}))
	e.says(saysReady)
	e.named("pool-2")
	e.Eventually("the label has become an annotation", func() error {
		claim := e.claim("claim")
		if diff := cmp.Diff(map[string]string{"team": "blue"}, claim.Labels); diff != "" || claim.Annotations[keys.SandboxName] != "pool-2" {
			return fmt.Errorf("annotations %v, labels (-want +got):\n%s", claim.Annotations, diff)
		}
		return nil
	})
}

// thief takes every member for another claim the moment before the controller does.
type thief struct {
	e    *environment
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t *thief) RoundTrip(request *http.Request) (*http.Response, error) {
	if name := path.Base(request.URL.Path); request.Method == http.MethodPatch && strings.Contains(request.URL.Path, "/sandboxes/pool-") {
		taken := []byte(fmt.Sprintf(`{"metadata":{"ownerReferences":[{"apiVersion":%q,"kind":"SandboxClaim","name":"other","uid":"other-%s","controller":true}]}}`,
			extensionsv1beta1.GroupVersion.String(), name))
		if err := t.e.Client.Patch(request.Context(), t.e.sandboxNamed(name), client.RawPatch(types.MergePatchType, taken)); err != nil {
			return nil, err
		}
	}
	return t.next.RoundTrip(request)
}

func TestAClaimThatLosesEveryMemberSaysSoAndGoesOn(t *testing.T) {
	t.Parallel()
	e := newEnvironment(t, func(e *environment) {
		e.setting.ColdStartAfter = 0
		e.Wrap = func(next http.RoundTripper) http.RoundTripper { return &thief{e: e, next: next} }
	})
	stock := e.pool()
	for i := range adoptionTries {
		stock.add(fmt.Sprintf("pool-%d", i))
	}
	stock.offers(adoptionTries, adoptionTries)
	said := e.reasons()
	e.Create(makeClaim("claim"))
	e.says(saysNotReady)
	e.named("claim")
	if got := said(); !slices.Contains(got, ReasonAdoptionConflict) {
		t.Errorf("the claim said %v, want %s among it", got, ReasonAdoptionConflict)
	}
	var conflicts dto.Metric
	if err := e.reconciler.metrics.conflicts.Write(&conflicts); err != nil || conflicts.GetCounter().GetValue() != adoptionTries {
		t.Errorf("%v conflicts are counted, %v, want %d", conflicts.GetCounter().GetValue(), err, adoptionTries)
	}
	for i := range adoptionTries {
		if owner := stock.member(fmt.Sprintf("pool-%d", i)).OwnerReferences[0]; owner.Name != "other" {
			t.Errorf("member %d belongs to %s", i, owner.Name)
		}
	}
}
