// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package policies_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// trap is a way in which an engine that is put together in the obvious way lets an object through, or stops what it
// should not, and the test that would then fail: a file, and a name or case in it.
type trap struct {
	what, file, test string
}

var traps = []trap{
	// What OPA does not say.
	{"capabilities given beside a compiler are ignored, so rules could call http.send", "engine/loading_test.go", `"A request to the network"`},
	{"a rule could read the environment of the process", "engine/loading_test.go", `"The environment of the process"`},
	{"builtins that leave the process, or that nobody can cancel, are allowed unless they are taken away", "engine/internal_test.go", "func TestDangerousBuiltinsAreNotAllowed"},
	{"an error of a builtin is undefined, which means allowed", "engine/evaluation_test.go", `"A builtin that errs"`},
	{"the index of rules decides startswith without the error that it would give", "engine/evaluation_test.go", `"A value of the wrong type"`},
	{"one error aborts the query of all rules, so that the others find nothing", "engine/evaluation_test.go", `"One fault beside a finding"`},
	{"a rule with two values is an error, not a finding", "engine/evaluation_test.go", `"A rule with two answers"`},
	{"a deadline is only asked for between steps", "engine/evaluation_test.go", `"An evaluation that does not end"`},
	{"a query that does not stop holds up the answer", "engine/evaluation_test.go", "func TestARuleThatCannotBeCancelledDoesNotHoldUpTheAnswer"},
	{"queries that do not stop add up", "engine/evaluation_test.go", "func TestEvaluationsBeyondTheirNumberFail"},
	{"a rule that never ends costs every request its whole time", "engine/quarantine_test.go", "func TestARuleThatDoesNotEndAgainAndAgainIsQuarantined"},
	{"deny[msg] if is an object in v1, not a set", "engine/loading_test.go", `"The v0 form that v1 takes for an object"`},
	{"a module without deny or warn finds nothing", "engine/loading_test.go", `"No entry point"`},
	{"no rules at all allow everything", "engine/loading_test.go", `"There are no rules"`},
	{"an engine that has not loaded allows everything", "engine/loading_test.go", "func TestAnEngineWithoutRulesDenies"},
	{"a mistyped field is undefined, which means allowed", "engine/schema_test.go", "func TestRulesAreTypeCheckedAgainstOurKinds"},
	{"a look-alike letter makes another field", "engine/loading_test.go", `"Look-alike letters in a reference"`},
	{"one bad file breaks all others", "engine/loading_test.go", `"A set beside a complete rule"`},
	{"every package can read and widen every other", "engine/loading_test.go", `"The package of a rule of the library"`},
	{"all data is one document that every rule can read", "engine/loading_test.go", `"All data"`},
	{"a bad file takes its last good content away", "engine/loading_test.go", "func TestBrokenModuleKeepsItsLastGoodContent"},
	{"a mounted ConfigMap shows each file several times", "engine/module_test.go", "func TestLoadFS"},
	{"parameters of the wrong type are no violation", "engine/config_test.go", "func TestConfigurationErrors"},
	{"an empty allow-list allows everything", "engine/loading_test.go", `"An empty allow-list that is on by default"`},
	{"the clock differs between two runs about one request", "engine/evaluation_test.go", "func TestTimeIsThatOfTheRequest"},
	{"a reload is seen half", "engine/reload_test.go", "func TestReloadsDoNotDisturbRequests"},
	{"two exemptions: the looser one wins for ever", "engine/override_test.go", `"The day after"`},

	// What the Pod Security Standards do not say of objects that are no Pods yet.
	{"restricted lets a hostPath behind a configMap through", "engine/podsecurity_test.go", `"Two sources of a volume"`},
	{"os windows switches checks off", "engine/podsecurity_test.go", `"Windows does not switch checks off"`},
	{"hostUsers false makes root pass", "engine/podsecurity_test.go", `"Root in a user namespace"`},
	{"hostUsers false makes an unmasked /proc pass", "engine/podsecurity_test.go", `"Proc mount with user namespaces"`},
	{"a Pod without metadata panics", "engine/podsecurity_test.go", "a Pod without metadata"},
	{"a level that cannot be read is privileged", "engine/podsecurity_test.go", `"A level that cannot be read"`},
	{"a new check is not looked at where it should be", "engine/internal_test.go", "func TestEveryCheckOfPodSecurityHasAPlaceAndARemedy"},
	{"a field of a new Kubernetes touches the node, and no rule looks at it", "controls_test.go", "func TestReviewedFieldsAreThoseOfKubernetes"},

	// How objects are written.
	{"init, sidecar and ephemeral containers are forgotten", "library/privileged/privileged_test.rego", "some list in fixtures.lists"},
	{"null is not absent", "lib/values_test.rego", "null"},
	{"a list is written as an object", "lib/containers_test.rego", "test_a_list_written_as_an_object_is_visited"},
	{"a value of the wrong type makes a rule fail instead of finding it", "types_test.go", "func TestNoValueOfTheWrongTypeMakesARuleFail"},
	{"not a.b in list is undefined where a.b is", "lib/labels_test.rego", `"not in, absent"`},
	{"a member of the wrong type is skipped", "lib/containers_test.rego", "test_members_of_the_wrong_type_count_as_empty"},
	{"a message about an absent name is undefined, and so is its finding", "lib/containers_test.rego", "a container without a name"},
	{"a function of something undefined is undefined also after not", "library/limits-required/limits-required_test.rego", "test_denies_without_resources"},
	{"a registry is compared by its first letters", "lib/images_test.rego", `"longer segment"`},
	{"the port of a registry is taken for a tag", "lib/images_test.rego", `"localhost:5000/agent"`},
	{"images are read in another way than by the container engine", "engine/facts_test.go", "func FuzzImage"},
	{"quantities are compared as text, or by builtins with other suffixes", "engine/internal_test.go", "func FuzzQuantity"},
	{"a range with leading zeros or host bits is an error or something else", "engine/facts_test.go", "func FuzzCIDR"},
	{"everything is allowed in two halves", "library/egress-any/egress-any_test.rego", "test_denies_halves_together"},
	{"an egress rule without a peer allows all", "library/egress-any/egress-any_test.rego", "test_denies_no_peer"},
	{"addresses of metadata services lie in public ranges", "library/egress-metadata/egress-metadata_test.rego", "test_denies"},
	{"a claim steers the runtime by the annotations that it adds", "library/runtime-annotations/runtime-annotations_test.rego", "test_denies_a_claim"},

	// What the operation means.
	{"a rule keeps an object from going away", "engine/evaluation_test.go", "func TestKindsAndOperationsThatAreNotJudged"},
	{"an object with a finalizer cannot end under stricter rules", "../webhook/handlers_test.go", `"an object on its way out is never judged"`},
	{"a stricter rule blocks a change of a label", "../webhook/handlers_test.go", `"a fault that was there does not block a label"`},
	{"an update brings a second fault of the same kind", "../webhook/handlers_test.go", `"a second fault of the same kind is refused"`},
	{"validation trusts that the mutation ran", "../webhook/handlers_test.go", `"a Sandbox that did not pass the mutation"`},
	{"a pool grows by its scale subresource", "../webhook/handlers_test.go", "scaling"},
	{"a fault of a template is seen by the controller only", "../webhook/handlers_test.go", `"a pool of a template that has a fault"`},
	{"a dry run leaves traces", "../webhook/mutate_test.go", "func TestDryRunLeavesNoTrace"},
	{"a ConfigMap that is deleted takes its rules away", "../controller/policysource/source_test.go", "func TestTheRemovalOfAPolicyConfigMapIsConfirmedByAnAnnotation"},
}

// TestEveryTrapHasATest keeps the list and the tests together.
func TestEveryTrapHasATest(t *testing.T) {
	seen := map[string]bool{}
	for _, trap := range traps {
		content, err := os.ReadFile(trap.file)
		if err != nil {
			t.Errorf("%s: %v", trap.what, err)
			continue
		}
		if !strings.Contains(string(content), trap.test) {
			t.Errorf("%s: %s has no %s", trap.what, trap.file, trap.test)
		}
		if seen[trap.what] {
			t.Errorf("%s: is listed twice", trap.what)
		}
		seen[trap.what] = true
		if !regexp.MustCompile(`_test\.(go|rego)$`).MatchString(trap.file) {
			t.Errorf("%s: %s holds no tests", trap.what, trap.file)
		}
	}
}
