// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

// backstopTold is what the README says of the backstop, or what its policies do.
type backstopTold struct {
	// Rules are the ids that each policy refuses with.
	Rules map[string][]string
	// Everyone are the policies that the platform itself does not pass, Bypass the names that
	// the verb bypass can be given for.
	Everyone, Bypass []string
}

var (
	quotedName     = regexp.MustCompile("`([a-z-]+)`")
	bypassOf       = regexp.MustCompile(`\.name\('([a-z]+)'\)\.check\('bypass'\)`)
	startOfMessage = regexp.MustCompile(`^'([a-z-]+): `)
)

func sortedSet(texts []string) []string {
	slices.Sort(texts)
	return slices.Compact(texts)
}

func toldByTheReadme(t *testing.T) backstopTold {
	t.Helper()
	data, err := os.ReadFile(chartDir + "/README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(data), "## The backstop\n")
	section, _, _ = strings.Cut(section, "\n## ")
	told := backstopTold{Rules: map[string][]string{}}
	var names []string
	for line := range strings.Lines(section) {
		cells := strings.Split(line, "|")
		if named := quotedNames(cells[min(1, len(cells)-1)]); len(cells) == 5 && len(named) > 0 {
			names = named
		}
		for _, name := range names {
			if len(cells) == 5 {
				told.Rules[name] = sortedSet(append(told.Rules[name], quotedNames(cells[3])...))
			}
		}
		if _, list, found := strings.Cut(line, "verbs: [bypass]}  # "); found {
			told.Bypass = sortedSet(strings.Split(strings.TrimSpace(list), ", "))
		}
	}
	_, passed, _ := strings.Cut(section, "pass all but ")
	passed, _, _ = strings.Cut(passed, ".")
	told.Everyone = sortedSet(quotedNames(passed))
	return told
}

func quotedNames(text string) []string {
	var names []string
	for _, match := range quotedName.FindAllStringSubmatch(text, -1) {
		names = append(names, match[1])
	}
	return names
}

// The README tells of every policy of the backstop, of the rules that it refuses with, and
// of who passes it.
func TestTheReadmeTellsOfTheBackstop(t *testing.T) {
	done := backstopTold{Rules: map[string][]string{}}
	r := render(t, install{files: []string{"prod"}, set: []string{"backstop.rules=Always"}})
	for _, policy := range all[*admissionregistrationv1.ValidatingAdmissionPolicy](r) {
		name, _, _ := strings.Cut(strings.TrimPrefix(policy.Name, "agent-sandbox-"), ".")
		done.Rules[name] = nil
		for _, validation := range policy.Spec.Validations {
			if match := startOfMessage.FindStringSubmatch(validation.MessageExpression); match != nil {
				done.Rules[name] = append(done.Rules[name], match[1])
			}
		}
		for _, match := range bypassOf.FindAllStringSubmatch(policy.Spec.String(), -1) {
			done.Bypass = append(done.Bypass, match[1])
		}
		done.Rules[name] = sortedSet(done.Rules[name])
		if !slices.ContainsFunc(policy.Spec.MatchConditions, func(c admissionregistrationv1.MatchCondition) bool { return c.Name == "not-by-the-platform" }) {
			done.Everyone = append(done.Everyone, name)
		}
	}
	done.Everyone, done.Bypass = sortedSet(done.Everyone), sortedSet(done.Bypass)
	if diff := cmp.Diff(done, toldByTheReadme(t)); diff != "" {
		t.Errorf("the backstop (-rendered +README):\n%s", diff)
	}
}
