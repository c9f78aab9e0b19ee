// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes/scheme"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/config"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/judge"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/policysource"
	"github.com/agent-sandbox-platform/agent-sandbox/policies"
	"github.com/agent-sandbox-platform/agent-sandbox/policies/engine"
)

const controllerUser = "system:serviceaccount:agent-sandbox-system:agent-sandbox-controller"

const platform = `
defaultTier: standard
tiers:
  standard:
    podSecurity: {deny: baseline, version: v1.37}
    runtimeClass: {classes: [kata, gvisor]}
    dropCapabilities: [NET_RAW]
    egress: {profile: public, allowed: [none]}
    creates: [Sandbox, SandboxClaim]
  restricted:
    podSecurity: {deny: restricted, version: v1.37}
    runtimeClass: {classes: [gvisor], required: true}
    egress: {profile: none}
    creates: [SandboxClaim]
egressProfiles: {none: {}, public: {dns: true, internet: true}}
cluster: {dns: {namespace: kube-system, podLabels: {k8s-app: kube-dns}}}
router: {namespace: agent-sandbox-system, podLabels: {app: sandbox-router}}
`

// world is a webhook with the cluster that it sees.
type world struct {
	objects  []client.Object
	policies map[string]string
	unloaded bool
	// hurried leaves the rules no time.
	hurried bool
	// platform is its configuration; empty for that of these tests.
	platform string
	// log gets the decisions; it may be nil.
	log     *engine.DecisionLog
	lookups interceptor.Funcs
}

func namespace(name string, labels map[string]string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
}

func extension(text string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	if err := json.Unmarshal([]byte(text), &object.Object); err != nil {
		panic(err) //nolint:forbidigo // the literal of a test is wrong
	}
	object.SetAPIVersion(extensionsv1beta1.GroupVersion.String())
	return object
}

// start makes the handlers of the world.
func (w world) start(tb testing.TB) map[string]http.Handler {
	tb.Helper()
	judge, source, m := w.parts(tb)
	return Handlers(judge, source, m, 100)
}

// judge is that of the world by itself.
func (w world) judge(tb testing.TB) *Judge {
	tb.Helper()
	judge, _, _ := w.parts(tb)
	return judge
}

func (w world) parts(tb testing.TB) (*Judge, *policysource.Source, *Metrics) {
	tb.Helper()
	objects := append([]client.Object{
		namespace("tenant", nil), namespace("strict", map[string]string{"platform.agents.x-k8s.io/tier": "restricted"}),
		namespace("lost", map[string]string{"platform.agents.x-k8s.io/tier": "lax"}),
		namespace("labelled", map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}),
		&nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: "gvisor"}, Handler: "runsc"},
	}, w.objects...)
	if w.policies != nil {
		objects = append(objects, policyConfigMap("policies", w.policies))
	}
	s := runtime.NewScheme()
	if err := scheme.AddToScheme(s); err != nil {
		tb.Fatal(err)
	}
	if err := agentsv1beta1.AddToScheme(s); err != nil {
		tb.Fatal(err)
	}
	builder := fake.NewClientBuilder().WithIndex(&corev1.Node{}, takesPods, whetherItTakesPods)
	for _, kind := range hashedKinds {
		builder.WithIndex(hashedKind(kind), nameHash, hashOf)
	}
	reader := builder.WithScheme(s).WithObjects(objects...).WithInterceptorFuncs(w.lookups).Build()
	parsed, err := config.Parse([]byte(w.configuration()))
	if err != nil {
		tb.Fatal(err)
	}
	clock := testclock.NewFakeClock(time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC))
	budget := 10 * time.Second
	if w.hurried {
		budget = 1
	}
	rules, err := engine.New(engine.WithClock(clock), engine.WithBudget(budget, time.Second), engine.WithInventory(Inventory{Cached: reader}), engine.WithDecisionLog(w.log))
	if err != nil {
		tb.Fatal(err)
	}
	m, err := NewMetrics(prometheus.NewRegistry(), clock)
	if err != nil {
		tb.Fatal(err)
	}
	source := newSource(tb, reader, rules)
	if !w.unloaded {
		if _, err := source.Reconcile(tb.Context(), reconcile.Request{}); err != nil {
			tb.Fatal(err)
		}
	}
	decide := &Judge{
		Judge:           &judge.Judge{Current: func() *config.Platform { return parsed }, Engine: rules, Clock: clock, Lookup: Lookup{Cached: reader, Live: reader}},
		ControllerUsers: sets.New(controllerUser),
		Patience:        time.Minute,
	}
	return decide, source, m
}

func newSource(tb testing.TB, reader client.Reader, rules *engine.Engine) *policysource.Source {
	tb.Helper()
	library, err := policies.Library()
	if err != nil {
		tb.Fatal(err)
	}
	m, err := policysource.NewMetrics(prometheus.NewRegistry(), config.ComponentWebhook)
	if err != nil {
		tb.Fatal(err)
	}
	return policysource.New(policysource.Options{
		Reader: reader, Namespace: "agent-sandbox-system", Engine: rules, Library: library, Metrics: m,
	})
}

// ask sends an AdmissionReview as the apiserver does and returns the response.
func ask(t *testing.T, handler http.Handler, request admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	t.Helper()
	request.UID = "7d1f"
	body, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, Request: &request,
	})
	if err != nil {
		t.Fatal(err)
	}
	call := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", bytes.NewReader(body))
	call.Header.Set("Content-Type", "application/json")
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, call)
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(recorder.Body.Bytes(), &review); err != nil {
		t.Fatalf("answer %s: %v", recorder.Body, err)
	}
	if review.Response == nil || review.Response.UID != "7d1f" {
		t.Fatalf("answer %s, want a response to the request's UID", recorder.Body)
	}
	return review.Response
}

// creation is the request to create an object in a namespace.
func creation(namespace, kind, object string) admissionv1.AdmissionRequest {
	return admissionv1.AdmissionRequest{
		Operation: admissionv1.Create, Namespace: namespace,
		Kind:     metav1.GroupVersionKind{Group: "agents.x-k8s.io", Version: "v1beta1", Kind: kind},
		Object:   runtime.RawExtension{Raw: []byte(object)},
		UserInfo: userInfo("jane"),
	}
}

func update(namespace, kind, old, object string) admissionv1.AdmissionRequest {
	request := creation(namespace, kind, object)
	request.Operation, request.OldObject = admissionv1.Update, runtime.RawExtension{Raw: []byte(old)}
	return request
}

// container is a hardened container.
func container() string {
	return `{"name": "main", "image": "registry.example.com/a:1",
		"resources": {"limits": {"cpu": "1", "memory": "1Gi", "ephemeral-storage": "1Gi"}, "requests": {"cpu": "1", "memory": "1Gi", "ephemeral-storage": "1Gi"}},
		"securityContext": {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["NET_RAW"]}}}`
}

// sandbox is a hardened Sandbox with these members of its Pod.
func sandbox(pod string) string {
	return `{"apiVersion": "agents.x-k8s.io/v1beta1", "kind": "Sandbox", "metadata": {"name": "box", "namespace": "tenant"},
		"spec": {"operatingMode": "Running", "podTemplate": {"spec": {"automountServiceAccountToken": false, "enableServiceLinks": false,
		"runtimeClassName": "gvisor", "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}}` + pod + `,
		"containers": [` + container() + `]}}}}`
}

const hostPath = `, "volumes": [{"name": "root", "hostPath": {"path": "/etc"}}]`

func TestValidate(t *testing.T) {
	good, bad := sandbox(""), sandbox(hostPath)
	privileged := strings.Replace(bad, `"allowPrivilegeEscalation": false`, `"privileged": true`, 1)
	relabelled := strings.Replace(bad, `"name": "box",`, `"name": "box", "labels": {"team": "a"},`, 1)
	reordered := strings.Replace(bad, `"volumes": [`, `"volumes": [{"name": "tmp", "emptyDir": {}}, `, 1)
	another := strings.Replace(bad, `"volumes": [`, `"volumes": [{"name": "new", "hostPath": {"path": "/etc"}}, `, 1)
	suspended := strings.Replace(bad, "Running", "Suspended", 1)
	leaves := func(object string) string {
		return strings.Replace(object, `"name": "box",`, `"name": "box", "deletionTimestamp": "2026-11-29T12:00:00Z",`, 1)
	}
	ending := func(object string) string {
		return strings.Replace(object, `"operatingMode"`, `"shutdownTime": "2026-12-01T00:00:00Z", "operatingMode"`, 1)
	}
	cases := map[string]struct {
		request admissionv1.AdmissionRequest
		// denied are the rules with their fields, in order; none means allowed.
		denied []string
	}{
		"a good Sandbox": {creation("tenant", "Sandbox", good), nil},
		"a Sandbox that mounts the node's files": {
			creation("tenant", "Sandbox", bad), []string{"hostpath spec.podTemplate.spec.volumes[0].hostPath"},
		},
		"several faults come back together": {
			creation("tenant", "Sandbox", privileged), []string{
				"privileged spec.podTemplate.spec.containers[0].securityContext.privileged",
				"hostpath spec.podTemplate.spec.volumes[0].hostPath",
			},
		},
		"a Sandbox that did not pass the mutation": {
			creation("tenant", "Sandbox", strings.Replace(good, `"enableServiceLinks": false,`, "", 1)),
			[]string{"hardened-defaults spec.podTemplate.spec.enableServiceLinks"},
		},
		"a fault that was there does not block a label":     {update("tenant", "Sandbox", bad, relabelled), nil},
		"nor another order of the list":                     {update("tenant", "Sandbox", bad, reordered), nil},
		"nor suspending":                                    {update("tenant", "Sandbox", bad, suspended), nil},
		"a second fault of the same kind is refused":        {update("tenant", "Sandbox", bad, another), []string{"hostpath spec.podTemplate.spec.volumes[0].hostPath"}},
		"a fault that an update brings in is refused":       {update("tenant", "Sandbox", good, bad), []string{"hostpath spec.podTemplate.spec.volumes[0].hostPath"}},
		"so is one that comes along with suspending":        {update("tenant", "Sandbox", good, suspended), []string{"hostpath spec.podTemplate.spec.volumes[0].hostPath"}},
		"an object on its way out is never judged":          {update("tenant", "Sandbox", leaves(good), leaves(bad)), nil},
		"who says so of a new one is judged all the same":   {creation("tenant", "Sandbox", leaves(bad)), []string{"hostpath spec.podTemplate.spec.volumes[0].hostPath"}},
		"and so is who says so with an update":              {update("tenant", "Sandbox", good, leaves(bad)), []string{"hostpath spec.podTemplate.spec.volumes[0].hostPath"}},
		"an update without what was before is judged whole": {update("tenant", "Sandbox", "null", bad), []string{"hostpath spec.podTemplate.spec.volumes[0].hostPath"}},
		"deleting is never judged":                          {admissionv1.AdmissionRequest{Operation: admissionv1.Delete, Namespace: "tenant"}, nil},
		"connecting is never judged":                        {admissionv1.AdmissionRequest{Operation: admissionv1.Connect, Namespace: "tenant"}, nil},
		"a namespace of a tier that nobody defined":         {creation("lost", "Sandbox", good), []string{"tier namespace.metadata.labels[platform.agents.x-k8s.io/tier]"}},
		"a label changes in a namespace of an unknown tier": {update("lost", "Sandbox", bad, relabelled), nil},
		"a Sandbox there is to end at another time":         {update("lost", "Sandbox", bad, ending(bad)), nil},
		"and is suspended with it":                          {update("lost", "Sandbox", bad, ending(suspended)), nil},
		"a spec changes in a namespace of an unknown tier": {
			update("lost", "Sandbox", good, strings.Replace(good, "example.com", "example.org", 1)),
			[]string{"tier namespace.metadata.labels[platform.agents.x-k8s.io/tier]"},
		},
		"a namespace whose own label is restricted": {
			creation("labelled", "Sandbox", good), []string{
				"pss-restricted spec.podTemplate.spec.containers[0].securityContext.capabilities.drop",
				"pss-restricted spec.podTemplate.spec.containers[0].securityContext.runAsNonRoot",
			},
		},
		"a claim of a pool that does not exist is only warned of": {
			creation("tenant", "SandboxClaim", `{"metadata": {"name": "c"}, "spec": {"warmPoolRef": {"name": "none"}}}`), nil,
		},
		"a pool of a template that has a fault": {
			creation("tenant", "SandboxWarmPool", `{"metadata": {"name": "p"}, "spec": {"sandboxTemplateRef": {"name": "bad"}}}`),
			[]string{"hostpath template.spec.podTemplate.spec.volumes[0].hostPath"},
		},
		"a claim of a pool of that template": {
			creation("tenant", "SandboxClaim", `{"metadata": {"name": "c"}, "spec": {"warmPoolRef": {"name": "bad"}}}`),
			[]string{"hostpath template.spec.podTemplate.spec.volumes[0].hostPath"},
		},
		"scaling down is never refused": {scale("bad", 5, 1), nil},
		"scaling up brings no fault in": {scale("bad", 1, 5), nil},
		"scaling a pool that is gone":   {scale("gone", 1, 5), nil},
	}
	handlers := world{objects: []client.Object{
		extension(`{"kind": "SandboxTemplate", "metadata": {"name": "bad", "namespace": "tenant"}, "spec": {"podTemplate": ` +
			`{"spec": {"automountServiceAccountToken": false, "volumes": [{"name": "root", "hostPath": {"path": "/etc"}}], "containers": [` + container() + `]}}}}`),
		extension(`{"kind": "SandboxWarmPool", "metadata": {"name": "bad", "namespace": "tenant"}, "spec": {"replicas": 1, "sandboxTemplateRef": {"name": "bad"}}}`),
	}}.start(t)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			response := ask(t, handlers[PathValidate], tc.request)
			var denied []string
			if details := response.Result.Details; details != nil {
				for _, cause := range details.Causes {
					denied = append(denied, string(cause.Type)+" "+cause.Field)
				}
			}
			if diff := cmp.Diff(tc.denied, denied); diff != "" || response.Allowed != (len(tc.denied) == 0) {
				t.Errorf("allowed %t, causes (-want +got):\n%s\n%s", response.Allowed, diff, response.Result.Message)
			}
		})
	}
}

// However many faults an object has from before, what is new is told from them; a list of them stays short.
func TestAnObjectOfManyFaultsIsJudgedByWhatChanges(t *testing.T) {
	const many = 180
	volumes := func(count int) string {
		list := make([]string, count)
		for i := range list {
			list[i] = fmt.Sprintf(`{"name": "v%d", "hostPath": {"path": "/etc/%d"}}`, i, i)
		}
		return `, "volumes": [` + strings.Join(list, ", ") + `]`
	}
	handlers := world{}.start(t)
	crowded := sandbox(volumes(many))
	for name, tc := range map[string]struct {
		request admissionv1.AdmissionRequest
		// begin is how the message begins, empty when the request is allowed, and last how the last cause ends.
		begin, last string
	}{
		"a new one":             {creation("tenant", "Sandbox", crowded), "180 findings:", "Fix: Correct those that are listed and try again."},
		"another image":         {update("tenant", "Sandbox", crowded, strings.Replace(crowded, "example.com", "example.org", 1)), "", ""},
		"one volume less":       {update("tenant", "Sandbox", crowded, sandbox(volumes(many-1))), "", ""},
		"one volume more":       {update("tenant", "Sandbox", crowded, sandbox(volumes(many+1))), "hostpath: spec.podTemplate.spec.volumes[180].hostPath", ""},
		"another place on disk": {update("tenant", "Sandbox", crowded, strings.Replace(crowded, "/etc/7\"", "/var/7\"", 1)), "hostpath: spec.podTemplate.spec.volumes[7].hostPath", ""},
	} {
		t.Run(name, func(t *testing.T) {
			response := ask(t, handlers[PathValidate], tc.request)
			if response.Allowed != (tc.begin == "") || !strings.HasPrefix(response.Result.Message, tc.begin) {
				t.Fatalf("allowed %t: %s", response.Allowed, response.Result.Message)
			}
			if response.Allowed {
				return
			}
			causes := response.Result.Details.Causes
			if last := causes[len(causes)-1].Message; len(causes) > maxCauses || !strings.HasSuffix(last, tc.last) {
				t.Errorf("%d causes, of which the last is %q", len(causes), last)
			}
		})
	}
}

func scale(pool string, from, to int) admissionv1.AdmissionRequest {
	object := func(replicas int) string {
		return fmt.Sprintf(`{"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": %q, "namespace": "tenant"}, "spec": {"replicas": %d}}`, pool, replicas)
	}
	request := update("tenant", "Scale", object(from), object(to))
	request.SubResource, request.Name = "scale", pool
	return request
}

// Who may not write a template may not change one either, though its spec stood there before.
func TestARuleAboutTheWriterJudgesWhatHeChanges(t *testing.T) {
	handlers := world{policies: map[string]string{
		"policy.yaml": "rules: {platform-owned: {enforcement: Deny, parameters: {groups: [platform]}}}",
	}}.start(t)
	stored := strings.NewReplacer(`"Sandbox"`, `"SandboxTemplate"`, `"operatingMode": "Running", `, "").Replace(sandbox(""))
	for name, tc := range map[string]struct {
		object string
		groups []string
		denied bool
	}{
		"another image":            {strings.Replace(stored, "example.com", "example.org", 1), nil, true},
		"another label":            {strings.Replace(stored, `"name": "box",`, `"name": "box", "labels": {"team": "a"},`, 1), nil, true},
		"the image, by who may":    {strings.Replace(stored, "example.com", "example.org", 1), []string{"platform"}, false},
		"a finalizer, by whomever": {strings.Replace(stored, `"name": "box",`, `"name": "box", "finalizers": ["a/b"],`, 1), nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			request := update("tenant", "SandboxTemplate", stored, tc.object)
			request.UserInfo.Groups = tc.groups
			response := ask(t, handlers[PathValidate], request)
			if denied := strings.Contains(response.Result.Message, "platform-owned"); denied != tc.denied || denied == response.Allowed {
				t.Errorf("allowed %t: %s", response.Allowed, response.Result.Message)
			}
		})
	}
}

func TestAnswerForPeopleAndPrograms(t *testing.T) {
	handlers := world{}.start(t)
	request := creation("tenant", "Sandbox", sandbox(hostPath+`, "hostNetwork": true`))
	request.Name = "box"
	response := ask(t, handlers[PathValidate], request)
	wantLines := []string{
		"2 findings:",
		"- host-namespaces: spec.podTemplate.spec.hostNetwork (true): ",
		"- hostpath: spec.podTemplate.spec.volumes[0].hostPath (/etc): ",
	}
	lines := strings.Split(response.Result.Message, "\n")
	for i, want := range wantLines {
		if len(lines) != len(wantLines) || !strings.HasPrefix(lines[i], want) || i > 0 && !strings.Contains(lines[i], ". Fix: ") {
			t.Errorf("message:\n%s\nwant line %d to begin with %q and to name a fix", response.Result.Message, i, want)
		}
	}
	if result := response.Result; result.Code != 403 || result.Reason != metav1.StatusReasonForbidden || result.Details.Name != "box" || result.Details.Kind != "Sandbox" {
		t.Errorf("result %+v, want 403 Forbidden about Sandbox box", result)
	}
	if got := response.AuditAnnotations; got["denied"] != "host-namespaces,hostpath" || !strings.HasPrefix(got["policy-digest"], "sha256:") {
		t.Errorf("audit annotations %v, want the digest and the rules that denied", got)
	}
}

func TestWarningsRefuseNothing(t *testing.T) {
	handlers := world{policies: map[string]string{"policy.yaml": "rules: {hostpath: {enforcement: Warn}, pss-baseline: {enforcement: Audit}}"}}.start(t)
	pod := strings.Replace(sandbox(""), `"gvisor"`, `"gvisr"`, 1)
	response := ask(t, handlers[PathValidate], creation("tenant", "Sandbox", pod))
	want := "runtimeclass-exists: spec.podTemplate.spec.runtimeClassName (gvisr): there is no such RuntimeClass, so the Pod cannot start. Fix: This cluster has: gvisor."
	if !response.Allowed || len(response.Warnings) == 0 || response.Warnings[0] != want {
		t.Errorf("allowed %t, warnings %q, want it allowed with %q", response.Allowed, response.Warnings, want)
	}
}

func TestValidateRefusesInItsOwnNameWhatItCannotJudge(t *testing.T) {
	broken := interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
			if key.Name == "panic" {
				panic("boom") //nolint:forbidigo // what a fault of ours would do
			}
			return c.Get(ctx, key, object, opts...)
		},
	}
	good := sandbox("")
	cases := map[string]struct {
		world   world
		request admissionv1.AdmissionRequest
		code    int32
		message string
	}{
		"policies that are not loaded yet": {world{unloaded: true}, creation("tenant", "Sandbox", good), 503, "policies-not-loaded"},
		"a namespace that does not exist":  {world{}, creation("nowhere", "Sandbox", good), 500, `read namespace "nowhere"`},
		"a request without an object":      {world{}, creation("tenant", "Sandbox", "null"), 400, "has none"},
		"an object that is no object":      {world{}, creation("tenant", "Sandbox", `["x"]`), 400, "read the object"},
		"an operation that there is not":   {world{}, admissionv1.AdmissionRequest{Operation: "PATCH", Namespace: "tenant"}, 400, `no operation "PATCH"`},
		"no operation":                     {world{}, admissionv1.AdmissionRequest{Namespace: "tenant"}, 400, "no operation"},
		"a panic":                          {world{lookups: broken}, creation("panic", "Sandbox", good), 500, "panic"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			response := ask(t, tc.world.start(t)[PathValidate], tc.request)
			if response.Allowed || response.Result.Code != tc.code {
				t.Errorf("allowed %t, code %d, want a refusal with %d", response.Allowed, response.Result.Code, tc.code)
			}
			for _, part := range []string{"agent-sandbox admission", tc.message} {
				if !strings.Contains(response.Result.Message, part) {
					t.Errorf("message %q, want it to contain %q", response.Result.Message, part)
				}
			}
		})
	}
}

func TestWithoutPoliciesNothingThatEndsIsRefused(t *testing.T) {
	handlers := world{unloaded: true}.start(t)
	good := sandbox("")
	for name, request := range map[string]admissionv1.AdmissionRequest{
		"suspending":   update("tenant", "Sandbox", good, strings.Replace(good, "Running", "Suspended", 1)),
		"status":       update("tenant", "Sandbox", good, strings.Replace(good, `"spec"`, `"status": {"nodeName": "n"}, "spec"`, 1)),
		"scaling down": scale("gone", 3, 0),
		"a smaller pool": update("tenant", "SandboxWarmPool", `{"metadata": {"name": "p"}, "spec": {"replicas": 3}}`,
			`{"metadata": {"name": "p"}, "spec": {"replicas": 1}}`),
	} {
		if response := ask(t, handlers[PathValidate], request); !response.Allowed {
			t.Errorf("%s is refused: %s", name, response.Result.Message)
		}
	}
}

func TestControllersAreJudgedByPoliciesOnly(t *testing.T) {
	handlers := world{}.start(t)
	owned := strings.Replace(sandbox(""), `"name": "box",`, `"name": "box", "labels": {"agents.x-k8s.io/claim-uid": "u"},
		"ownerReferences": [{"apiVersion": "extensions.agents.x-k8s.io/v1beta1", "kind": "SandboxClaim", "name": "c", "controller": true}],`, 1)
	for user, want := range map[string]bool{controllerUser: true, "jane": false, "system:serviceaccount:tenant:agent-sandbox-controller": false} {
		request := creation("tenant", "Sandbox", owned)
		request.UserInfo = userInfo(user)
		if response := ask(t, handlers[PathValidate], request); response.Allowed != want {
			t.Errorf("%s is allowed: %t, want %t: %s", user, response.Allowed, want, response.Result.Message)
		}
		request.Object.Raw = []byte(strings.Replace(owned, `"containers"`, `"hostPID": true, "containers"`, 1))
		if response := ask(t, handlers[PathValidate], request); response.Allowed {
			t.Errorf("%s may share the node's processes", user)
		}
	}
}
