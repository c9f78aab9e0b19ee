// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"testing"

	"k8s.io/pod-security-admission/api"

	"github.com/agent-sandbox-platform/agent-sandbox/policies/engine"
)

// trap is a way in which an engine or a rule that is put together in the obvious way lets an object through, or stops
// what it should not.
type trap struct {
	what string
	// try gives one input to such an engine and to ours, and says what each comes to.
	try func(t *testing.T) (naive, ours string)
}

// What an engine comes to.
const (
	allowed = "allowed"
	refused = "refused"
)

const (
	restricted  = "securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}"
	allowListed = "rules: {registry-allowed: {enforcement: Deny, parameters: {registries: [registry.example.com]}}}"
	anyEgress   = `some rule in input.object.spec.networkPolicy.egress; some peer in rule.to; peer.ipBlock.cidr == "0.0.0.0/0"`
)

// traps are those that an engine shows; ../traps_test.go has the others.
var traps = []trap{
	// What OPA does not say.
	{"capabilities given beside a compiler are ignored, so rules could call http.send", refusing(
		`deny contains "x" if http.send({"url": "http://127.0.0.1:1/", "method": "get"}).status_code == 200`, "undefined function http.send")},
	{"a rule could read the environment of the process", refusing(
		`deny contains "x" if opa.runtime().env.NOT_SET_ANYWHERE == "1"`, "undefined function opa.runtime")},
	{"an error of a builtin is undefined, which means allowed", refusing(
		`deny contains "x" if time.parse_rfc3339_ns(input.object.metadata.name) > 0`, "eval_builtin_error: time.parse_rfc3339_ns")},
	{"the index of rules decides startswith without the error that it would give", refusing(
		`deny contains "x" if startswith(input.object.spec.podTemplate.spec.containers[0].resources.limits.cpu, "a")`, "eval_type_error: startswith",
		"containers: [{name: a, image: 'a:1', resources: {limits: {cpu: 1}}}]")},
	{"one error aborts the query of all rules, so that the others find nothing", together(`deny contains "x" if to_number(input.kind) > 1`)},
	{"a rule with two values is an error, not a finding", together("deny contains \"x\" if v > 0\n\nv := 1\n\nv := 2 if input.kind")},
	{"a query that does not stop holds up the answer", holdsUp},
	{"queries that do not stop add up", addsUp},
	{"a rule that never ends costs every request its whole time", costsAll},
	{"deny[msg] if is an object in v1, not a set", refusing(`deny[msg] if { msg := "x" }`, "has to be a set of findings")},
	{"an answer that is no set is taken for none", refusing(`deny := {"message": "x"}`, "has to be a set of findings")},
	{"a module without deny or warn finds nothing", refusing(`denied contains "x" if true`, "neither deny nor warn")},
	{"an engine that has not loaded allows everything", notLoaded},
	{"no rules at all allow everything", noRules},
	{"a mistyped field is undefined, which means allowed", refusing(
		`deny contains "x" if input.pod.spec.automountServiceAcountToken == false`, "undefined ref: input.pod.spec.automountServiceAcountToken")},
	{"a type that a field never has is never equal", refusing(
		`deny contains "x" if input.pod.spec.automountServiceAccountToken == "false"`, "match error")},
	{"a look-alike letter makes another field", beside("deny contains \"x\" if input.pоd", "", "input.pоd")},
	{"one bad file breaks all others", beside("deny contains", "", "b.rego")},
	{"every package can read and widen every other", beside("deny contains \"y\" if input.kind == \"Nothing\"\n\nexempt if true", "extra.a", "package policies.extra.a is that of")},
	{"a rule can read what another finds", beside("deny contains \"y\" if count(data.policies.extra.a.deny) > 100", "", "a rule may refer to")},
	{"all data is one document that every rule can read", beside("deny contains \"y\" if data.secrets.token == \"x\"", "", "a rule may refer to")},
	{"the parameters of another rule are data too", beside("deny contains \"y\" if data.parameters.a.max == 7", "", "a rule may refer to")},
	{"a mounted ConfigMap shows each file several times", mounted},
	{"parameters of the wrong type are no violation", parameters(
		`deny contains "x" if 6 > input.parameters.max`, "{max: {description: x, type: integer, default: 5}}", "{max: '5'}", "got string, want integer")},
	{"an empty allow-list allows everything", parameters(
		"deny contains \"x\" if {\n\tcount(input.parameters.allowed) > 0\n\tnot input.kind in input.parameters.allowed\n}",
		"{allowed: {description: x, type: array, default: [a]}}\n#   at_least_one: [allowed]", "{allowed: []}", "allowed")},
	{"a parameter that nobody declared is undefined", refusing(`deny contains "x" if count(input.parameters.refused) > 0`, "there is no such parameter")},
	{"the clock differs between two runs about one request", clocks},

	// What the Pod Security Standards do not say of objects that are no Pods yet.
	{"restricted lets a hostPath behind a configMap through", level(
		api.LevelRestricted, restricted, confined("capabilities: {drop: [ALL]}"), "volumes: [{name: a, configMap: {name: a}, hostPath: {path: /}}]")},
	{"os windows switches checks off", level(api.LevelRestricted, restricted, confined("capabilities: {add: [SYS_ADMIN]}"), "os: {name: windows}")},
	{"hostUsers false makes root pass", level(api.LevelRestricted,
		"securityContext: {runAsUser: 0, seccompProfile: {type: RuntimeDefault}}", confined("capabilities: {drop: [ALL]}"), "hostUsers: false")},
	{"hostUsers false makes an unmasked /proc pass", level(
		api.LevelBaseline, restricted, confined("capabilities: {drop: [ALL]}, procMount: Unmasked"), "hostUsers: false")},
	{"a token of the Kubernetes API hides in a list of sources", level(api.LevelRestricted,
		restricted, confined("capabilities: {drop: [ALL]}"), "volumes: [{name: a, projected: {sources: [{serviceAccountToken: {path: a}}]}}]")},
	{"a Pod without metadata panics", withoutMetadata},

	// How objects are written.
	{"init, sidecar and ephemeral containers are forgotten", naiveRule{
		deny:  `some c in input.pod.spec.containers; c.securityContext.privileged`,
		meant: "containers: [{name: a, image: 'a:1', securityContext: {privileged: true}}]",
		given: "initContainers: [{name: a, image: 'a:1', securityContext: {privileged: true}}]", rule: "privileged",
	}.try},
	{"null is not absent", naiveRule{
		deny:  `object.get(input.pod.spec, "automountServiceAccountToken", true) == true`,
		meant: "automountServiceAccountToken: true", given: "automountServiceAccountToken: null", rule: "automount-token",
	}.try},
	{"null is no list", naiveRule{
		deny:  `some c in array.concat(input.pod.spec.containers, object.get(input.pod.spec, "initContainers", [])); c.securityContext.privileged`,
		meant: "containers: [{name: a, image: 'a:1', securityContext: {privileged: true}}]",
		given: "{initContainers: null, containers: [{name: a, image: 'a:1', securityContext: {privileged: true}}]}", rule: "privileged",
	}.try},
	{"a list is written as an object", naiveRule{
		deny:  `some i in [0, 1, 2]; input.pod.spec.containers[i].securityContext.privileged`,
		meant: "containers: [{name: a, image: 'a:1', securityContext: {privileged: true}}]",
		given: "containers: {a: {name: a, image: 'a:1', securityContext: {privileged: true}}}", rule: "privileged",
	}.try},
	{"a value of the wrong type is not the one that a rule looks for", naiveRule{
		deny: `input.pod.spec.hostPID == true`, meant: "hostPID: true", given: "hostPID: 'true'", rule: "host-namespaces",
	}.try},
	{"not a.b in list is undefined where a.b is", naiveRule{
		deny: `class := input.pod.spec.runtimeClassName; not class in {"gvisor"}`, meant: "runtimeClassName: runc",
		given:         "hostNetwork: false",
		configuration: "rules: {runtimeclass-required: {enforcement: Deny, parameters: {always: true}}}", rule: "runtimeclass-required",
	}.try},
	{"a message about an absent name is undefined, and so is its finding", naiveRule{
		deny:  `some c in input.pod.spec.containers; c.securityContext.privileged; sprintf("%s is privileged", [c.name]) != ""`,
		meant: "containers: [{name: a, image: 'a:1', securityContext: {privileged: true}}]",
		given: "containers: [{image: 'a:1', securityContext: {privileged: true}}]", rule: "privileged",
	}.try},
	{"a function of something undefined is undefined also after not", naiveRule{
		deny:          `some c in input.pod.spec.containers; not startswith(c.resources.limits.cpu, "1")`,
		meant:         "containers: [{name: a, image: 'a:1', resources: {limits: {cpu: '2'}}}]",
		given:         "containers: [{name: a, image: 'a:1'}]",
		configuration: "rules: {limits-required: {enforcement: Deny}}", rule: "limits-required",
	}.try},
	{"a registry is compared by its first letters", naiveRule{
		deny:  `some c in input.pod.spec.containers; not startswith(c.image, "registry.example.com")`,
		meant: "containers: [{name: a, image: evil.example/a}]", given: "containers: [{name: a, image: registry.example.com.evil.example/a}]",
		configuration: allowListed, rule: "registry-allowed",
	}.try},
	{"the port of a registry is taken for a tag", naiveRule{
		deny:  `some c in input.pod.spec.containers; not contains(c.image, ":")`,
		meant: "containers: [{name: a, image: agent}]", given: "containers: [{name: a, image: 'localhost:5000/agent'}]",
		configuration: "rules: {no-latest: {enforcement: Deny}}", rule: "no-latest",
	}.try},
	{"images are read in another way than by the container engine", naiveRule{
		deny:  `some c in input.pod.spec.containers; contains(c.image, "/"); not startswith(c.image, "registry.example.com/")`,
		meant: "containers: [{name: a, image: evil.example/a}]", given: "containers: [{name: a, image: 'python:3'}]",
		configuration: allowListed, rule: "registry-allowed",
	}.try},
	{"quantities are compared as text", naiveRule{
		deny:          `some c in input.pod.spec.containers; c.resources.limits.memory > "70Gi"`,
		meant:         "containers: [{name: a, image: 'a:1', resources: {limits: {cpu: 1, memory: 80Gi}}}]",
		given:         "containers: [{name: a, image: 'a:1', resources: {limits: {cpu: 1, memory: 60000Gi}}}]",
		configuration: "rules: {max-resources: {enforcement: Deny}}", rule: "max-resources",
	}.try},
	{"quantities are read by builtins with other suffixes", refusing(`deny contains "x" if units.parse_bytes("10Gz") > 1000`, "undefined function units.parse_bytes")},
	{"a range with leading zeros is an error or something else", refusing(
		`deny contains "x" if net.cidr_contains("010.0.0.0/8", "10.0.0.1")`, "could not be evaluated")},
	{"everything is allowed in two halves", naiveRule{
		deny: anyEgress, kind: engine.KindSandboxTemplate, meant: "{egress: [{to: [{ipBlock: {cidr: 0.0.0.0/0}}]}]}",
		given:         "{egress: [{to: [{ipBlock: {cidr: 0.0.0.0/1}}, {ipBlock: {cidr: 128.0.0.0/1}}]}]}",
		configuration: "rules: {egress-any: {enforcement: Deny}}", rule: "egress-any",
	}.try},
	{"an egress rule without a peer allows all", naiveRule{
		deny: anyEgress, kind: engine.KindSandboxTemplate, meant: "{egress: [{to: [{ipBlock: {cidr: 0.0.0.0/0}}]}]}",
		given: "{egress: [{ports: [{port: 443}]}]}", configuration: "rules: {egress-any: {enforcement: Deny}}", rule: "egress-any",
	}.try},
	{"addresses of metadata services lie in public ranges", naiveRule{
		deny: `some rule in input.object.spec.networkPolicy.egress; some peer in rule.to; startswith(peer.ipBlock.cidr, "169.254.169.254")`,
		kind: engine.KindSandboxTemplate, meant: "{egress: [{to: [{ipBlock: {cidr: 169.254.169.254/32}}]}]}",
		given:         "{egress: [{to: [{ipBlock: {cidr: 169.254.0.0/16}}]}]}",
		configuration: "rules: {egress-metadata: {enforcement: Deny}}", rule: "egress-metadata",
	}.try},
	{"a claim steers the runtime by the annotations that it adds", naiveRule{
		deny: `some key, _ in input.object.metadata.annotations; startswith(key, "io.katacontainers.")`,
		kind: engine.KindSandboxClaim, meant: "metadata: {name: task, annotations: {io.katacontainers.config.hypervisor.path: /bin/sh}}",
		given:         "spec: {warmPoolRef: {name: pool}, additionalPodMetadata: {annotations: {io.katacontainers.config.hypervisor.path: /bin/sh}}}",
		configuration: "rules: {runtime-annotations: {enforcement: Deny}}", rule: "runtime-annotations",
	}.try},
}

// TestEveryTrapCatchesANaiveEngine wants each trap to catch an engine that is put together in the obvious way, and not ours.
func TestEveryTrapCatchesANaiveEngine(t *testing.T) {
	seen := map[string]bool{}
	for _, trap := range traps {
		if seen[trap.what] {
			t.Errorf("%s: is listed twice", trap.what)
		}
		seen[trap.what] = true
		t.Run(trap.what, func(t *testing.T) {
			if naive, ours := trap.try(t); naive == ours || ours == allowed {
				t.Errorf("a naive engine: %s, ours: %s; want that they differ", naive, ours)
			}
		})
	}
}
