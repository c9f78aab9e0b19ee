// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/judge"
	"github.com/agent-sandbox-platform/agent-sandbox/policies/engine"
)

// When more come than can be judged, the others are told to come again; none of them
// is admitted unjudged, and the first are answered.
func TestRequestsBeyondTheLimitAreAskedToComeAgain(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	handler := newShedder(2).shed(admission.HandlerFunc(func(context.Context, admission.Request) admission.Response {
		entered <- struct{}{}
		<-leave
		return admission.Allowed("")
	}))
	answers := make(chan admission.Response, 2)
	for range 2 {
		go func() { answers <- handler.Handle(t.Context(), admission.Request{}) }()
		<-entered
	}
	response := handler.Handle(t.Context(), admission.Request{})
	if r := response.Result; response.Allowed || r.Code != http.StatusTooManyRequests || r.Reason != metav1.StatusReasonTooManyRequests || r.Details.RetryAfterSeconds != 1 {
		t.Errorf("the third request gets %+v, want 429 with a second to wait", response.Result)
	}
	if !strings.Contains(response.Result.Message, "nothing is wrong with this one") {
		t.Errorf("message %q, want it to say whose fault it is", response.Result.Message)
	}
	close(leave)
	for range 2 {
		if answer := <-answers; !answer.Allowed {
			t.Errorf("a request within the limit gets %+v", answer.Result)
		}
	}
	go func() { <-entered }()
	if again := handler.Handle(t.Context(), admission.Request{}); !again.Allowed {
		t.Errorf("a request after the rush gets %+v", again.Result)
	}
}

// Nobody is refused for good because a machine was too busy to judge him, nor is an update let through for it; what
// is known to be wrong is refused all the same. Each rule that had no time is counted, whatever the answer.
func TestRequestsThatAreNotJudgedInTimeAreAskedToComeAgain(t *testing.T) {
	good := sandbox("")
	named := func(metadata string) string {
		return strings.Replace(good, `"name": "box",`, `"name": "box", `+metadata+`,`, 1)
	}
	const reserved = `"annotations": {"agents.x-k8s.io/pod-name": "x"}`
	cases := map[string]struct {
		request admissionv1.AdmissionRequest
		code    int32
		says    string
	}{
		"one that nothing is known against": {creation("tenant", "Sandbox", good), http.StatusTooManyRequests, "did not judge the object in time"},
		"an update of its labels":           {update("tenant", "Sandbox", good, named(`"labels": {"a": "b"}`)), http.StatusTooManyRequests, "did not judge the object in time"},
		"an update of its Pod":              {update("tenant", "Sandbox", good, sandbox(`, "hostname": "a"`)), http.StatusTooManyRequests, "did not judge the object in time"},
		"one with a reserved annotation":    {creation("tenant", "Sandbox", named(reserved)), http.StatusForbidden, "reserved-metadata"},
		"an update that brings it in":       {update("tenant", "Sandbox", good, named(reserved)), http.StatusForbidden, "reserved-metadata"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			decide, source, m := world{hurried: true}.parts(t)
			registry := prometheus.NewRegistry()
			registry.MustRegister(m.failures)
			r := ask(t, Handlers(decide, source, m, 100)[PathValidate], tc.request).Result
			if r == nil || r.Code != tc.code || !strings.Contains(r.Message, tc.says) {
				t.Fatalf("it gets %+v, want %d because of %q", r, tc.code, tc.says)
			}
			if tc.code == http.StatusTooManyRequests && r.Details.RetryAfterSeconds != 1 {
				t.Errorf("it is to wait %d seconds, want 1", r.Details.RetryAfterSeconds)
			}
			if late := counted(t, registry)["agent_sandbox_policy_failures_total"]; late < 10 {
				t.Errorf("%v rules without an answer are counted, want all that there are", late)
			}
		})
	}
}

// timedLookup notes the deadlines that it is given.
type timedLookup struct {
	judge.Lookup
	seen []time.Time
}

func (d *timedLookup) Pool(ctx context.Context, namespace, name string) (map[string]any, error) {
	at, _ := ctx.Deadline()
	d.seen = append(d.seen, at)
	return d.Lookup.Pool(ctx, namespace, name)
}

// An apiserver waits for both judgements of an update together, five seconds and no longer.
func TestAnUpdateIsJudgedWithinOneTime(t *testing.T) {
	decide, source, m := world{}.parts(t)
	lookup := &timedLookup{Lookup: decide.Lookup}
	decide.Lookup = lookup
	claim := func(metadata string) string {
		return `{"metadata": {"name": "c"` + metadata + `}, "spec": {"warmPoolRef": {"name": "none"}}}`
	}
	request := update("tenant", "SandboxClaim", claim(""), claim(`, "annotations": {"agents.x-k8s.io/pod-name": "x"}`))
	if ask(t, Handlers(decide, source, m, 100)[PathValidate], request).Allowed {
		t.Error("it is allowed, so that nobody asks what was before")
	}
	if len(lookup.seen) != 2 || lookup.seen[0].IsZero() || !lookup.seen[0].Equal(lookup.seen[1]) {
		t.Errorf("the ends of the time of both judgements are %v, want one", lookup.seen)
	}
	if whole := waitForPlace + timeToArrive + timeToJudge; whole >= 5*time.Second {
		t.Errorf("a request may take %v", whole)
	}
}

// What cannot even be looked up in time is asked to come again as well.
func TestARequestWhoseLookupsAreLateIsAskedToComeAgain(t *testing.T) {
	decide, source, m := world{}.parts(t)
	decide.Patience = 0
	decide.Lookup = slowLookup{decide.Lookup}
	if r := ask(t, Handlers(decide, source, m, 100)[PathValidate], creation("tenant", "Sandbox", sandbox(""))).Result; r == nil || r.Code != http.StatusTooManyRequests {
		t.Errorf("it gets %+v, want 429", r)
	}
}

// slowLookup waits until nobody waits for it any more.
type slowLookup struct{ judge.Lookup }

func (slowLookup) Namespace(ctx context.Context, _ string) (engine.NamespaceInfo, error) {
	<-ctx.Done()
	return engine.NamespaceInfo{}, fmt.Errorf("get the namespace: %w", ctx.Err())
}

// Two replicas may have different tiers while they roll: what one left unset the other
// misses. What else is wrong does not come right.
func TestAnObjectThatLacksOnlyDefaultsIsAskedToComeAgain(t *testing.T) {
	handlers := world{}.start(t)
	lacks := strings.Replace(sandbox(""), `"enableServiceLinks": false,`, "", 1)
	if r := ask(t, handlers[PathValidate], creation("tenant", "Sandbox", lacks)).Result; r.Code != http.StatusTooManyRequests ||
		r.Reason != metav1.StatusReasonTooManyRequests || r.Details.RetryAfterSeconds != 1 || len(r.Details.Causes) != 1 ||
		!strings.Contains(r.Message, "hardened defaults were not applied, try again") {
		t.Errorf("one that lacks a default gets %+v, want 429 with a second to wait", r)
	}
	wrong := strings.Replace(lacks, `"podTemplate": {"spec": {`, `"podTemplate": {"spec": {"hostPID": true, `, 1)
	if r := ask(t, handlers[PathValidate], creation("tenant", "Sandbox", wrong)).Result; r.Code != http.StatusForbidden || len(r.Details.Causes) < 2 {
		t.Errorf("one that is wrong as well gets %+v, want it refused", r)
	}
}

// Decoded, a request takes many times its length, so a long one takes the place of
// several: what is judged at the same time is bounded in bytes. The longest ones
// still come through, one after the other.
func TestLongRequestsTakeThePlaceOfSeveral(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	handler := newShedder(10).shed(admission.HandlerFunc(func(context.Context, admission.Request) admission.Response {
		entered <- struct{}{}
		<-leave
		return admission.Allowed("")
	}))
	long := func(bytes int) admission.Request {
		var req admission.Request
		req.Object.Raw, req.OldObject.Raw = make([]byte, bytes/2), make([]byte, bytes/2)
		return req
	}
	done := make(chan admission.Response, 1)
	go func() { done <- handler.Handle(t.Context(), long(20*bytesOfPlace)) }()
	<-entered
	if second := handler.Handle(t.Context(), long(2)); second.Allowed || second.Result.Code != http.StatusTooManyRequests {
		t.Errorf("a request beside a long one gets %+v, want 429", second.Result)
	}
	leave <- struct{}{}
	if first := <-done; !first.Allowed {
		t.Errorf("the long one gets %+v", first.Result)
	}
}

func TestObjectsBeyondTheLimitsAreRefused(t *testing.T) {
	handlers := world{}.start(t)
	deep := func(levels int) string {
		return sandbox(`, "affinity": ` + strings.Repeat(`{"a": [`, levels/2) + strings.Repeat(`]}`, levels/2))
	}
	long := func(bytes int) string {
		return strings.Replace(sandbox(""), `"name": "box"`, `"name": "box", "annotations": {"a": "`+strings.Repeat("x", bytes)+`"}`, 1)
	}
	many := func(list, entry string, count int) string {
		return sandbox(`, "` + list + `": [` + strings.TrimSuffix(strings.Repeat(entry+",", count), ",") + `]`)
	}
	manyLabels := func(count int) string {
		var labels strings.Builder
		for i := range count {
			fmt.Fprintf(&labels, `"l%d": "", `, i)
		}
		return strings.Replace(sandbox(""), `"name": "box"`, `"labels": {`+labels.String()+`"a": ""}, "name": "box"`, 1)
	}
	const pod = "request-limits: spec.podTemplate.spec."
	cases := map[string]struct {
		object string
		// refused is part of the message; empty when it is allowed.
		refused string
	}{
		"a deep object":                   {deep(40), ""},
		"one that is too deep":            {deep(80), "request-limits: the object nests more than 64 levels"},
		"one that is far too deep":        {deep(900), "request-limits: the object nests more than 64 levels"},
		"a long object":                   {long(1 << 20), ""},
		"as many volumes as are judged":   {many("volumes", `{"name": "a", "emptyDir": {}}`, 200), ""},
		"more volumes":                    {many("volumes", `{"name": "a", "hostPath": {"path": "/"}}`, 4000), pod + "volumes: has 4000 entries, at most 200 are judged. Fix: Use fewer."},
		"more containers":                 {many("initContainers", `{"name": "a", "image": "a"}`, 101), pod + "initContainers: has 101 entries, at most 100"},
		"more tolerations":                {many("tolerations", `{"key": "a"}`, 4000), pod + "tolerations: has 4000 entries, at most 100"},
		"more entries of any other list":  {many("unheardOf", `"a"`, 1001), pod + "unheardOf: has 1001 entries, at most 1000"},
		"more ports within a container":   {many("initContainers", `{"name": "a", "ports": [`+strings.Repeat("{}, ", 1000)+`{}]}`, 1), pod + "initContainers[0].ports: has 1001 entries"},
		"more labels":                     {manyLabels(1000), "request-limits: metadata.labels: has 1001 members, at most 1000"},
		"more values than all lists make": {many("initContainers", `{"env": [`+strings.Repeat("{}, ", 900)+`{}]}`, 100), "request-limits: the object has more than 20000 values. Fix: Make it smaller."},
		"an amount that keeps its readers busy": {
			sandbox(`, "volumes": [{"name": "a", "emptyDir": {"sizeLimit": "1.5e-2000000000"}}]`),
			pod + "volumes[0].emptyDir.sizeLimit (1.5e-2000000000): is an amount of too many digits. Fix: Write it with a suffix",
		},
		"a limit that does":    {many("initContainers", `{"name": "a", "image": "a", "resources": {"limits": {"cpu": "1e-2000000000"}}}`, 1), pod + "initContainers[0].resources.limits[cpu]"},
		"one that is too long": {long(3 << 19), "bytes, at most 1572864 can be stored"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			request := creation("tenant", "Sandbox", tc.object)
			if mutated := ask(t, handlers[PathMutate], request); !mutated.Allowed {
				t.Errorf("mutation refuses it: %s", mutated.Result.Message)
			}
			response := ask(t, handlers[PathValidate], request)
			if response.Allowed != (tc.refused == "") || !strings.Contains(response.Result.Message, tc.refused) {
				t.Errorf("allowed %t, %.200s, want %q", response.Allowed, response.Result.Message, tc.refused)
			}
			gone := strings.Replace(tc.object, `"name": "box"`, `"name": "box", "deletionTimestamp": "2026-11-29T12:00:00Z"`, 1)
			request = update("tenant", "Sandbox", gone, strings.Replace(gone, `"name": "box"`, `"name": "box", "finalizers": []`, 1))
			if leaving := ask(t, handlers[PathValidate], request); !leaving.Allowed {
				t.Errorf("on its way out: %.200s", leaving.Result.Message)
			}
		})
	}
}

// What was stored before a limit was tightened can still be kept in order: an update is
// refused for the excess that it brings in only.
func TestAnUpdateIsRefusedForTheExcessThatItBringsInOnly(t *testing.T) {
	handlers := world{}.start(t)
	volumes := func(count int) string {
		return sandbox(`, "volumes": [` + strings.TrimSuffix(strings.Repeat(`{"name": "a", "emptyDir": {}},`, count), ",") + `]`)
	}
	deep := func(levels int) string {
		return sandbox(`, "affinity": ` + strings.Repeat(`{"a": [`, levels/2) + strings.Repeat(`]}`, levels/2))
	}
	values := func(count int) string {
		return sandbox(`, "unheardOf": [` + strings.Repeat(`[`+strings.Repeat("1, ", 899)+`1], `, count/901) + `[` + strings.Repeat("1, ", count%901) + `1]]`)
	}
	ports := func(before string, count int) string {
		return sandbox(`, "initContainers": [` + before + `{"name": "crowded", "image": "a:1", "securityContext": {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["NET_RAW"]}},
			"ports": [` + strings.Repeat("{}, ", count-1) + `{}]}]`)
	}
	labels := func(count int) string {
		return strings.Replace(sandbox(""), `"name": "box"`, `"labels": {`+
			strings.Join(slices.Collect(func(yield func(string) bool) {
				for i := range count {
					if !yield(fmt.Sprintf(`"l%d": ""`, i)) {
						return
					}
				}
			}), ", ")+`}, "name": "box"`, 1)
	}
	long := strings.Replace(sandbox(""), `"name": "box"`, `"name": "box", "annotations": {"a": "`+strings.Repeat("x", maxObject)+`"}`, 1)
	const another = `{"name": "new", "image": "a:1", "securityContext": {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["NET_RAW"]}}}, `
	cases := map[string]struct {
		old string
		// more is the old object with more of what it has too much of; empty where nothing could be.
		more, refused string
	}{
		"too many volumes":            {volumes(250), volumes(251), "spec.podTemplate.spec.volumes: has 251 entries"},
		"too many levels":             {deep(80), deep(82), "the object nests more than 64 levels"},
		"too many values":             {values(21_000), values(21_200), "the object has more than 20000 values"},
		"too many ports of a named":   {ports("", 1100), ports(another, 1101), "spec.podTemplate.spec.initContainers[1].ports: has 1101 entries"},
		"as many of another":          {ports("", 1100), strings.Replace(ports("", 1100), `"crowded"`, `"other"`, 1), "initContainers[0].ports: has 1100 entries"},
		"too many labels":             {labels(1200), labels(1201), "metadata.labels: has 1201 members"},
		"too many bytes":              {long, "", ""},
		"nothing, with one too long":  {sandbox(""), long, "at most 1572864 can be stored"},
		"nothing, with more volumes":  {sandbox(""), volumes(201), "spec.podTemplate.spec.volumes: has 201 entries"},
		"as many volumes as may be":   {volumes(200), volumes(201), "spec.podTemplate.spec.volumes: has 201 entries"},
		"as many values as there may": {values(19_900), values(20_100), "the object has more than 20000 values"},
	}
	changes := map[string]func(string) string{
		"relabelled": func(old string) string {
			return strings.Replace(old, `"metadata": {`, `"metadata": {"generateName": "b", "annotations": {"b": "c"}, `, 1)
		},
		"extended": func(old string) string {
			return strings.Replace(old, `"spec": {`, `"spec": {"shutdownTime": "2026-12-01T12:00:00Z", "shutdownPolicy": "Delete", `, 1)
		},
		"suspended and more": func(old string) string {
			return strings.Replace(strings.Replace(old, "Running", "Suspended", 1), `"spec": {`, `"spec": {"service": true, `, 1)
		},
		"given another image": func(old string) string { return strings.Replace(old, "example.com/a:1", "example.com/a:2", 1) },
		"finished": func(old string) string {
			return strings.Replace(old, `"metadata": {`, `"metadata": {"finalizers": [], `, 1)
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for change, do := range changes {
				changed := do(tc.old)
				if changed == tc.old {
					t.Fatalf("%s changes nothing", change)
				}
				if response := ask(t, handlers[PathValidate], update("tenant", "Sandbox", tc.old, changed)); !response.Allowed {
					t.Errorf("%s: %.300s", change, response.Result.Message)
				}
			}
			if tc.more == "" {
				return
			}
			if response := ask(t, handlers[PathValidate], update("tenant", "Sandbox", tc.old, tc.more)); response.Allowed || !strings.HasPrefix(response.Result.Message, "request-limits: ") || !strings.Contains(response.Result.Message, tc.refused) {
				t.Errorf("more of it: allowed %t, %.300s, want %q", response.Allowed, response.Result.Message, tc.refused)
			}
		})
	}
}

// What is not judged is refused as what is judged: with causes, with the policies in force
// and the rule for the audit log, and counted.
func TestWhatIsTooLargeIsAnsweredAsAllElse(t *testing.T) {
	deep := sandbox(`, "affinity": ` + strings.Repeat(`{"a": [`, maxNesting) + strings.Repeat(`]}`, maxNesting))
	crowded := sandbox(`, "tolerations": [` + strings.Repeat(`{}, `, 100) + `{}]`)
	cases := map[string]struct {
		object, message string
		cause           metav1.StatusCause
	}{
		"one that is not decoded": {
			deep, "request-limits: the object nests more than 64 levels. Fix: Make it flatter.",
			metav1.StatusCause{Type: "request-limits", Message: "the object nests more than 64 levels. Fix: Make it flatter."},
		},
		"one with a crowded list": {
			crowded, "request-limits: spec.podTemplate.spec.tolerations: has 101 entries, at most 100 are judged. Fix: Use fewer.",
			metav1.StatusCause{Type: "request-limits", Field: "spec.podTemplate.spec.tolerations", Message: "has 101 entries, at most 100 are judged. Fix: Use fewer."},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			registry := prometheus.NewRegistry()
			m, err := NewMetrics(registry, testclock.NewFakeClock(time.Unix(0, 0)))
			if err != nil {
				t.Fatal(err)
			}
			decide, source, _ := world{}.parts(t)
			handlers := Handlers(decide, source, m, 100)
			request := creation("tenant", "Sandbox", tc.object)
			response := ask(t, handlers[PathValidate], request)
			if r := response.Result; response.Allowed || r.Code != http.StatusForbidden || r.Status != metav1.StatusFailure || r.Message != tc.message {
				t.Errorf("allowed %t, %+v, want it refused with %q", response.Allowed, r, tc.message)
			}
			if details := response.Result.Details; details == nil || !slices.Equal(details.Causes, []metav1.StatusCause{tc.cause}) {
				t.Errorf("details %+v, want the cause %+v", details, tc.cause)
			}
			want := map[string]string{"policy-digest": decide.Engine.Digest(), "denied": "request-limits"}
			if diff := cmp.Diff(want, response.AuditAnnotations); diff != "" {
				t.Errorf("audit annotations (-want +got):\n%s", diff)
			}
			if n := counted(t, registry)["agent_sandbox_admission_findings_total"]; n != 1 {
				t.Errorf("%v findings are counted, want 1", n)
			}
			if mutated := ask(t, handlers[PathMutate], request); !mutated.Allowed {
				t.Errorf("mutation refuses it: %+v", mutated.Result)
			}
		})
	}
}
