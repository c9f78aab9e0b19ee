// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package policies_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

// trap is a way in which an engine that is put together in the obvious way lets an object through, or stops what it
// should not, and the test that would then fail: a file, and a name or case in it.
type trap struct {
	what, file, test string
	// naive is the test or case of engine/naive*_test.go in which a naive engine does that. What only its time and memory
	// would show, or what happens outside of an engine, has none.
	naive string
}

var traps = []trap{
	// What OPA does not say.
	{"capabilities given beside a compiler are ignored, so rules could call http.send", "engine/loading_test.go", `"A request to the network"`, "a call of the network"},
	{"a rule could read the environment of the process", "engine/loading_test.go", `"The environment of the process"`, "a look at the environment"},
	{"builtins that leave the process, or that nobody can cancel, are allowed unless they are taken away", "engine/internal_test.go", "func TestDangerousBuiltinsAreNotAllowed", "a call of the network"},
	{"an error of a builtin is undefined, which means allowed", "engine/evaluation_test.go", `"A builtin that errs"`, "an error of a builtin"},
	{"the index of rules decides startswith without the error that it would give", "engine/evaluation_test.go", `"A value of the wrong type"`, "an operand of the wrong type"},
	{"one error aborts the query of all rules, so that the others find nothing", "engine/evaluation_test.go", `"One fault beside a finding"`, "an error that ends the whole query"},
	{"a rule with two values is an error, not a finding", "engine/evaluation_test.go", `"A rule with two answers"`, "a rule with two answers"},
	{"a deadline is only asked for between steps", "engine/evaluation_test.go", `"An evaluation that does not end"`, ""},
	{"a query that does not stop holds up the answer", "engine/deadline_test.go", "func TestARuleThatCannotBeCancelledDoesNotHoldUpTheAnswer", ""},
	{"queries that do not stop add up", "engine/deadline_test.go", "func TestEvaluationsBeyondTheirNumberWaitAndFail", ""},
	{"a rule that never ends costs every request its whole time", "engine/quarantine_test.go", "func TestARuleThatDoesNotEndAgainAndAgainIsQuarantined", ""},
	{"deny[msg] if is an object in v1, not a set", "engine/loading_test.go", `"The v0 form that v1 takes for an object"`, "a set in the form of v0"},
	{"a module without deny or warn finds nothing", "engine/loading_test.go", `"No entry point"`, "another name of the entry"},
	{"no rules at all allow everything", "engine/loading_test.go", `"There are no rules"`, "func TestWhatANaiveEngineWithoutRulesAllows"},
	{"an engine that has not loaded allows everything", "engine/loading_test.go", "func TestAnEngineWithoutRulesDenies", "func TestWhatANaiveEngineWithoutRulesAllows"},
	{"a mistyped field is undefined, which means allowed", "engine/schema_test.go", "func TestRulesAreTypeCheckedAgainstOurKinds", "a field that does not exist"},
	{"a look-alike letter makes another field", "engine/loading_test.go", `"Look-alike letters in a reference"`, "a look-alike letter"},
	{"one bad file breaks all others", "engine/loading_test.go", `"A set beside a complete rule"`, "a file that breaks all others"},
	{"every package can read and widen every other", "engine/loading_test.go", `"The package of a rule of the library"`, "a second file of a package"},
	{"all data is one document that every rule can read", "engine/loading_test.go", `"All data"`, "data that nobody declared"},
	{"a bad file takes its last good content away", "engine/loading_test.go", "func TestBrokenModuleKeepsItsLastGoodContent", "a file that breaks all others"},
	{"a mounted ConfigMap shows each file several times", "engine/module_test.go", "func TestLoadFS", "func TestWhatANaiveLoaderReadsOfAMountedConfigMap"},
	{"parameters of the wrong type are no violation", "engine/config_test.go", "func TestConfigurationErrors", "a text for a number"},
	{"an empty allow-list allows everything", "engine/loading_test.go", `"An empty allow-list that is on by default"`, "an empty allow-list"},
	{"the clock differs between two runs about one request", "engine/evaluation_test.go", "func TestTimeIsThatOfTheRequest", "func TestWhatTheClockOfANaiveEngineTells"},
	{"a reload is seen half", "engine/reload_test.go", "func TestReloadsDoNotDisturbRequests", ""},
	{"two exemptions: the looser one wins for ever", "engine/override_test.go", `"The day after"`, ""},

	// What the Pod Security Standards do not say of objects that are no Pods yet.
	{"restricted lets a hostPath behind a configMap through", "engine/podsecurity_test.go", `"Two sources of a volume"`, "a hostPath behind a configMap"},
	{"os windows switches checks off", "engine/podsecurity_test.go", `"Windows does not switch checks off"`, "a capability under Windows"},
	{"hostUsers false makes root pass", "engine/podsecurity_test.go", `"Root in a user namespace"`, "root in a user namespace"},
	{"hostUsers false makes an unmasked /proc pass", "engine/podsecurity_test.go", `"Proc mount with user namespaces"`, "an unmasked /proc in a user namespace"},
	{"a Pod without metadata panics", "engine/podsecurity_test.go", "a Pod without metadata", "func TestAPodWithoutMetadataMakesTheNaiveEvaluatorPanic"},
	{"a level that cannot be read is privileged", "engine/podsecurity_test.go", `"A level that cannot be read"`, ""},
	{"a new check is not looked at where it should be", "engine/internal_test.go", "func TestEveryCheckOfPodSecurityHasAPlaceAndARemedy", ""},
	{"a field of a new Kubernetes touches the node, and no rule looks at it", "controls_test.go", "func TestReviewedFieldsAreThoseOfKubernetes", ""},

	// How objects are written.
	{"init, sidecar and ephemeral containers are forgotten", "library/privileged/privileged_test.rego", "some list in fixtures.lists", "other lists of containers"},
	{"null is not absent", "lib/values_test.rego", "null", "null for absent"},
	{"a list is written as an object", "lib/containers_test.rego", "test_a_list_written_as_an_object_is_visited", "an object for a list"},
	{"a value of the wrong type makes a rule fail instead of finding it", "types_test.go", "func TestNoValueOfTheWrongTypeMakesARuleFail", "a value of another type"},
	{"not a.b in list is undefined where a.b is", "lib/labels_test.rego", `"not in, absent"`, "not in, of something absent"},
	{"a member of the wrong type is skipped", "lib/containers_test.rego", "test_members_of_the_wrong_type_count_as_empty", "null for a list"},
	{"a message about an absent name is undefined, and so is its finding", "lib/containers_test.rego", "a container without a name", "a message about something absent"},
	{"a function of something undefined is undefined also after not", "library/limits-required/limits-required_test.rego", "test_denies_without_resources", "a function of something absent"},
	{"a registry is compared by its first letters", "lib/images_test.rego", `"longer segment"`, "a registry by its first letters"},
	{"the port of a registry is taken for a tag", "lib/images_test.rego", `"localhost:5000/agent"`, "the port of a registry for a tag"},
	{"images are read in another way than by the container engine", "engine/facts_test.go", "func FuzzImage", "a registry that is left out"},
	{"quantities are compared as text, or by builtins with other suffixes", "engine/internal_test.go", "func FuzzQuantity", "quantities as texts"},
	{"a range with leading zeros or host bits is an error or something else", "engine/facts_test.go", "func FuzzCIDR", "a range with leading zeros"},
	{"everything is allowed in two halves", "library/egress-any/egress-any_test.rego", "test_denies_halves_together", "a range in two halves"},
	{"an egress rule without a peer allows all", "library/egress-any/egress-any_test.rego", "test_denies_no_peer", "a rule without peers"},
	{"addresses of metadata services lie in public ranges", "library/egress-metadata/egress-metadata_test.rego", "test_denies", "the address of a metadata service by its text"},
	{"a claim steers the runtime by the annotations that it adds", "library/runtime-annotations/runtime-annotations_test.rego", "test_denies_a_claim", "what a claim adds to the Pod"},

	// What the operation means.
	{"a rule keeps an object from going away", "engine/evaluation_test.go", "func TestKindsAndOperationsThatAreNotJudged", ""},
	{"an object with a finalizer cannot end under stricter rules", "../webhook/handlers_test.go", `"an object on its way out is never judged"`, ""},
	{"a stricter rule blocks a change of a label", "../webhook/handlers_test.go", `"a fault that was there does not block a label"`, ""},
	{"an update brings a second fault of the same kind", "../webhook/handlers_test.go", `"a second fault of the same kind is refused"`, ""},
	{"validation trusts that the mutation ran", "../webhook/handlers_test.go", `"a Sandbox that did not pass the mutation"`, ""},
	{"a pool grows by its scale subresource", "../webhook/handlers_test.go", "scaling", ""},
	{"a fault of a template is seen by the controller only", "../webhook/handlers_test.go", `"a pool of a template that has a fault"`, ""},
	{"a dry run is counted", "../webhook/mutate_test.go", "func TestDryRunsAreNotCounted", ""},
	{"a ConfigMap that is deleted takes its rules away", "../controller/policysource/source_test.go", "func TestTheRemovalOfAPolicyConfigMapIsConfirmedByAnAnnotation", ""},
}

// fewestShown is how many traps have a test in which a naive engine is caught.
const fewestShown = 42

// TestEveryTrapHasATest keeps the list and the tests together.
func TestEveryTrapHasATest(t *testing.T) {
	seen, shown := map[string]bool{}, 0
	var tests strings.Builder
	for _, file := range []string{"engine/naive_test.go", "engine/naive_rules_test.go"} {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		tests.Write(content)
	}
	naive := tests.String()
	for _, trap := range traps {
		content, err := os.ReadFile(trap.file)
		if err != nil {
			t.Errorf("%s: %v", trap.what, err)
			continue
		}
		if !strings.Contains(string(content), trap.test) {
			t.Errorf("%s: %s has no %s", trap.what, trap.file, trap.test)
		}
		if name, isFunc := strings.CutPrefix(trap.naive, "func "); trap.naive != "" && !strings.Contains(naive, "func "+name+"(") && !strings.Contains(naive, fmt.Sprintf("%q:", trap.naive)) {
			t.Errorf("%s: no test of a naive engine is called %q (a function: %t)", trap.what, name, isFunc)
		}
		if trap.naive != "" {
			shown++
		}
		if seen[trap.what] {
			t.Errorf("%s: is listed twice", trap.what)
		}
		seen[trap.what] = true
		if !regexp.MustCompile(`_test\.(go|rego)$`).MatchString(trap.file) {
			t.Errorf("%s: %s holds no tests", trap.what, trap.file)
		}
	}
	if shown < fewestShown {
		t.Errorf("%d traps are shown with a naive engine, want at least %d", shown, fewestShown)
	}
}
