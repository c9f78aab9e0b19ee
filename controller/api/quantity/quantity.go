// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package quantity keeps amounts away from the parser of Kubernetes that would keep it
// busy: "1e-100000000" takes it most of a minute, and one digit more all memory there is.
//
// 2026-11-30: The schemas of our kinds take exponents of two digits only, so that no
// apiserver stores an amount at which every reader of the object would hang, our
// controllers and those of others. Admission looks before, since mutation comes before
// the schema. An amount beyond 1e18 means nothing: Kubernetes cuts it off there.
package quantity

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Pattern is what an amount may look like in the schemas of our kinds: what Kubernetes
// documents, of bounded length.
const Pattern = `^[+-]?([0-9]{1,40}(\.[0-9]{0,40})?|\.[0-9]{1,40})([KMGTPE]i|[numkMGTPE]|[eE][+-]?0{0,9}[0-9]{1,2})?$`

// longest is how long an amount of Pattern can be.
const longest = 100

var greatExponent = regexp.MustCompile(`[eE][+-]?0*[1-9][0-9]{2,}$`)

// Costly reports whether reading an amount could take long. Most texts that are none are
// not: the parser sees that at once.
func Costly(text string) bool {
	return len(text) > longest || greatExponent.MatchString(text)
}

// Parse reads an amount that is not costly.
func Parse(text string) (resource.Quantity, error) {
	if Costly(text) {
		return resource.Quantity{}, fmt.Errorf("the amount %.20q has too many digits", text)
	}
	amount, err := resource.ParseQuantity(text)
	if err != nil {
		return resource.Quantity{}, fmt.Errorf("read the amount %q: %w", text, err)
	}
	return amount, nil
}

// Fields of Kubernetes types that hold amounts: mappings to some, or a single one.
var (
	mappings = []string{"limits", "requests", "overhead", "capacity"}
	singles  = []string{"sizeLimit", "divisor"}
)

// FindCostly looks through decoded JSON for the first costly amount, and returns its
// path from there. Most objects have none, which costs no memory to see.
func FindCostly(value any) (path, text string, found bool) {
	if !holdsCostly("", value) {
		return "", "", false
	}
	switch value := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			if path, text, found = costlyMember(name, value[name]); found {
				return "." + name + path, text, true
			}
		}
	case []any:
		for i, entry := range value {
			if path, text, found = FindCostly(entry); found {
				return "[" + strconv.Itoa(i) + "]" + path, text, true
			}
		}
	}
	return "", "", false
}

// holdsCostly reports whether a member of that name holds a costly amount anywhere.
func holdsCostly(name string, value any) bool {
	switch value := value.(type) {
	case string:
		return slices.Contains(singles, name) && Costly(value)
	case map[string]any:
		holds := slices.Contains(mappings, name)
		for below, member := range value {
			text, isText := member.(string)
			if holds && isText && Costly(text) || holdsCostly(below, member) {
				return true
			}
		}
	case []any:
		for _, entry := range value {
			if holdsCostly("", entry) {
				return true
			}
		}
	}
	return false
}

// costlyMember looks into a member of that name.
func costlyMember(name string, value any) (path, text string, found bool) {
	if single, isText := value.(string); isText && slices.Contains(singles, name) && Costly(single) {
		return "", single, true
	}
	if amounts, isObject := value.(map[string]any); isObject && slices.Contains(mappings, name) {
		for _, of := range slices.Sorted(maps.Keys(amounts)) {
			if amount, isText := amounts[of].(string); isText && Costly(amount) {
				return "[" + of + "]", amount, true
			}
		}
	}
	return FindCostly(value)
}
