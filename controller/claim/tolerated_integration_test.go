// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package claim

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/apiserver"
)

// What a claim got stands when template or rules turn against it: an Event warns, once. What
// its owner asks for later is judged by them.
func TestABoundClaimKeepsMetadataThatWouldBeRefusedToday(t *testing.T) {
	t.Parallel()
	labels := func(value string) func(*extensionsv1beta1.SandboxClaim) {
		return withPodMetadata(map[string]string{"sandbox.users.io/a": value}, nil)
	}
	cases := map[string]struct {
		turn func(*environment)
		// says is what the Event says, and refused what the claim says once its owner changes
		// the label.
		says, refused string
	}{
		"the template gains another value": {
			func(e *environment) {
				e.templateIs(func(t *template) {
					t.Spec.PodTemplate.ObjectMeta.Labels = map[string]string{"sandbox.users.io/a": "other"}
				})
			},
			`metadata override conflict: label "sandbox.users.io/a" is defined in template with value "other", but claim requests "b"`,
			`False/ReconcilerError: Error seen: metadata override conflict: label "sandbox.users.io/a" ` +
				`is defined in template with value "other", but claim requests "c"`,
		},
		"the domains narrow": {
			func(e *environment) {
				e.setting.Current().Claims.LabelDomains = []string{"example.com"}
				e.restart()
			},
			`spec.additionalPodMetadata.labels[sandbox.users.io/a]: the domain "sandbox.users.io" is not allowed: use example.com`,
			`False/InvalidMetadata: spec.additionalPodMetadata.labels[sandbox.users.io/a]: ` +
				`the domain "sandbox.users.io" is not allowed: use example.com`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEnvironment(t, func(e *environment) { e.Told = &apiserver.Told{} })
			e.bound(labels("b"))
			tc.turn(e)
			warned := func() int {
				return len(slices.DeleteFunc(e.Told.All(), func(said string) bool {
					return !strings.HasPrefix(said, "Warning MetadataNotApplied: ") || !strings.HasSuffix(said, tc.says)
				}))
			}
			e.jump("claim", 0)
			e.Eventually("its owner is warned", func() error {
				if warned() == 0 {
					return fmt.Errorf("he is told %q", e.Told.All())
				}
				return nil
			})
			e.edit("claim", func(c *extensionsv1beta1.SandboxClaim) { c.Spec.Lifecycle = &extensionsv1beta1.ClaimLifecycle{} })
			e.says(saysReady) // of the new generation
			if got := warned(); got != 1 {
				t.Errorf("he is warned %d times, want once", got)
			}
			e.edit("claim", labels("c"))
			e.says(tc.refused)
			e.named("pool-1")
		})
	}
}

// Without its template nobody can say what a claim may add, so that its owner is told what it waits for.
func TestMetadataOfABoundClaimWaitsForItsTemplateAndSaysSo(t *testing.T) {
	t.Parallel()
	e := newEnvironment(t, func(e *environment) { e.Told = &apiserver.Told{} })
	stock := e.bound()
	e.Delete(stock.template)
	e.edit("claim", withPodMetadata(map[string]string{"sandbox.users.io/a": "b"}, nil))
	want := `Warning MetadataNotApplied: What this claim adds to its Pod waits until SandboxTemplate "template" is there again, ` +
		`which says what a claim may add`
	e.Eventually("its owner is told", func() error {
		if told := e.Told.All(); !slices.Contains(told, want) {
			return fmt.Errorf("he is told %q", told)
		}
		return nil
	})
	if got, found := e.sandbox("pool-1").Spec.PodTemplate.ObjectMeta.Labels["sandbox.users.io/a"]; found {
		t.Errorf("the Sandbox has the label %q meanwhile", got)
	}
	e.Create(makeTemplate())
	e.Eventually("the Sandbox gets what was added", func() error {
		if got := e.sandbox("pool-1").Spec.PodTemplate.ObjectMeta.Labels["sandbox.users.io/a"]; got != "b" {
			return fmt.Errorf("the label is %q", got)
		}
		return nil
	})
}

// The apiserver takes edits of what somebody's finalizer holds after it was deleted, and admission judges none of them.
func TestATemplateThatIsBeingDeletedChangesNoSandbox(t *testing.T) {
	t.Parallel()
	e := newEnvironment(t, func(e *environment) { e.Told = &apiserver.Told{} })
	stock := e.bound()
	e.templateIs(func(t *template) { t.Finalizers = []string{"example.com/hold"} })
	e.Delete(stock.template)
	e.templateIs(func(t *template) {
		t.Spec.PodTemplate.ObjectMeta.Annotations = map[string]string{"k8s.v1.cni.cncf.io/networks": "unjudged"}
	})
	e.edit("claim", withPodMetadata(map[string]string{"sandbox.users.io/a": "b"}, nil))
	want := `Warning MetadataNotApplied: What this claim adds to its Pod waits until SandboxTemplate "template" is there again, ` +
		`which says what a claim may add`
	e.Eventually("its owner is told", func() error {
		if told := e.Told.All(); !slices.Contains(told, want) {
			return fmt.Errorf("he is told %q", told)
		}
		return nil
	})
	if got := e.sandbox("pool-1").Spec.PodTemplate.ObjectMeta.Annotations; got["k8s.v1.cni.cncf.io/networks"] != "" {
		t.Errorf("the Sandbox has the annotations %v", got)
	}
}

// meddler changes one member the moment before the controller takes it, each time.
type meddler struct {
	e      *environment
	member string
	times  atomic.Int64
}

func (m *meddler) wrap(next http.RoundTripper) http.RoundTripper {
	return &meddling{meddler: m, next: next}
}

type meddling struct {
	*meddler

	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (m *meddling) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method == http.MethodPatch && strings.HasSuffix(request.URL.Path, "/sandboxes/"+m.member) {
		touched := fmt.Appendf(nil, `{"metadata":{"annotations":{"example.com/touched":"%d"}}}`, m.times.Add(1))
		if err := m.e.Client.Patch(request.Context(), m.e.sandboxNamed(m.member), client.RawPatch(types.MergePatchType, touched)); err != nil {
			return nil, err
		}
	}
	return m.next.RoundTrip(request)
}

func TestAMemberThatAlwaysChangesDoesNotHoldUpAClaim(t *testing.T) {
	t.Parallel()
	m := &meddler{member: "pool-1"}
	e := newEnvironment(t, func(e *environment) { m.e, e.Wrap = e, m.wrap })
	stock := e.pool()
	stock.add("pool-1")
	stock.offers(1, 1)
	e.Create(makeClaim("claim"))
	e.Eventually("the controller has tried often", func() error {
		if got := m.times.Load(); got < adoptionTries {
			return fmt.Errorf("%d times", got)
		}
		return nil
	})
	stock.add("pool-2")
	e.says(saysReady)
	e.named("pool-2")
}
