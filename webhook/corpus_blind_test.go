// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// The ways in which a beginner's check reads an object.

// visit goes through all values below a value, the inner ones first, and puts what change
// makes of each in its place.
func visit(value any, change func(member string, value any) any) any {
	switch value := value.(type) {
	case map[string]any:
		for member, below := range value {
			value[member] = change(member, visit(below, change))
		}
	case []any:
		for i, below := range value {
			value[i] = change("", visit(below, change))
		}
	}
	return value
}

func isAny(map[string]any) bool { return true }

func isSidecar(container map[string]any) bool { return container["restartPolicy"] == "Always" }

func isNoSidecar(container map[string]any) bool { return !isSidecar(container) }

// without keeps the entries of a list in their places and empties those that the check
// does not see.
func without(list string, unseen func(map[string]any) bool) func(map[string]any) {
	return func(object map[string]any) {
		visit(object, func(member string, value any) any {
			all, isList := value.([]any)
			if member != list || !isList {
				return value
			}
			var kept []any
			for _, entry := range all {
				if entry, isObject := entry.(map[string]any); !isObject || !unseen(entry) {
					kept = append(kept, entry)
				}
			}
			return kept
		})
	}
}

// withoutMember does not see a member, wherever it is.
func withoutMember(name string) func(map[string]any) {
	return func(object map[string]any) {
		delete(object, name)
		visit(object, func(_ string, value any) any {
			if object, isObject := value.(map[string]any); isObject {
				delete(object, name)
			}
			return value
		})
	}
}

func has(name string) func(map[string]any) bool { return hasIn(name, nil) }

// hasIn looks for a member of that name, and in it, as a list, for an entry.
func hasIn(name string, entry func(map[string]any) bool) func(map[string]any) bool {
	return func(object map[string]any) bool {
		found := false
		visit(object, func(member string, value any) any {
			list, _ := value.([]any)
			found = found || member == name && (entry == nil || slices.ContainsFunc(list, func(one any) bool {
				object, isObject := one.(map[string]any)
				return isObject && entry(object)
			}))
			return value
		})
		return found
	}
}

func isEmpty(value any) bool {
	switch value := value.(type) {
	case map[string]any:
		return len(value) == 0
	case []any:
		return len(value) == 0
	default:
		return value == nil || value == ""
	}
}

// pruned takes what is empty for absent.
func pruned(object map[string]any) {
	visit(object, func(_ string, value any) any {
		if object, isObject := value.(map[string]any); isObject {
			maps.DeleteFunc(object, func(_ string, below any) bool { return isEmpty(below) })
		}
		return value
	})
}

// filled takes null for a value.
func filled(object map[string]any) {
	visit(object, func(_ string, value any) any {
		if value == nil {
			return map[string]any{}
		}
		return value
	})
}

func hasEmpty(object map[string]any) bool {
	found := false
	visit(object, func(_ string, value any) any {
		found = found || isEmpty(value)
		return value
	})
	return found
}

// byName reads a list as if it had one entry of a name: that which pick prefers.
func byName(object map[string]any, first bool) {
	visit(object, func(_ string, value any) any {
		list, isList := value.([]any)
		if !isList {
			return value
		}
		places, kept := map[string]int{}, []any{}
		for _, entry := range list {
			name := entryName(entry)
			place, twice := places[name]
			switch {
			case name == "" || !twice:
				places[name] = len(kept)
				kept = append(kept, entry)
			case !first:
				kept[place] = entry
			}
		}
		return kept
	})
}

func firstOfAName(object map[string]any) { byName(object, true) }

func lastOfAName(object map[string]any) { byName(object, false) }

// entryName is by what a beginner tells the entries of a list apart.
func entryName(entry any) string {
	object, _ := entry.(map[string]any)
	for _, path := range [][]string{{"name"}, {"metadata", "name"}, {"configMap", "name"}} {
		if name := textAt(object, path...); name != "" {
			return name
		}
	}
	return ""
}

func hasDuplicate(object map[string]any) bool {
	seen, twice := map[string]bool{}, false
	visit(object, func(_ string, value any) any {
		if name := entryName(value); name != "" {
			twice, seen[name] = twice || seen[name], true
		}
		return value
	})
	return twice
}

// readAs reads every text in another way.
func readAs(as func(string) string) func(map[string]any) {
	return func(object map[string]any) {
		visit(objectAt(object, "spec"), asText(as))
		for _, part := range []string{"labels", "annotations"} {
			visit(objectAt(object, "metadata", part), asText(as))
		}
	}
}

func asText(as func(string) string) func(string, any) any {
	return func(_ string, value any) any {
		if text, isText := value.(string); isText {
			return as(text)
		}
		return value
	}
}

func anyText(is func(string) bool) func(map[string]any) bool {
	return func(object map[string]any) bool {
		found := false
		visit(object, func(member string, value any) any {
			text, isText := value.(string)
			found = found || isText && member != "kind" && is(text)
			return value
		})
		return found
	}
}

// entries sees of lists of that name only texts that are written as it expects.
func entries(list string, seen func(string) bool) func(map[string]any) {
	return func(object map[string]any) {
		visit(object, func(member string, value any) any {
			all, isList := value.([]any)
			if member != list || !isList {
				return value
			}
			return slices.DeleteFunc(all, func(entry any) bool { return !seen(fmt.Sprint(entry)) })
		})
	}
}

func isUpper(text string) bool { return text == strings.ToUpper(text) }

// lookAlikes are letters beside those that they look like.
var lookAlikes = strings.NewReplacer("С", "C", "а", "a", "\u212a", "k", "\uff23", "C", "\uff28", "H", "\uff2f", "O", "\uff37", "W", "\uff2e", "N")

func folded(text string) string { return lookAlikes.Replace(text) }

// ascii leaves out every other letter.
func ascii(text string) string {
	return strings.Map(func(letter rune) rune {
		if letter > 127 {
			return -1
		}
		return letter
	}, text)
}

func images(as func(string) string) func(map[string]any) {
	return func(object map[string]any) {
		visit(object, func(member string, value any) any {
			if text, isText := value.(string); isText && member == "image" {
				return as(text)
			}
			return value
		})
	}
}

// beforeDigest is an image without its digest.
func beforeDigest(image string) string {
	name, _, _ := strings.Cut(image, "@")
	return name
}

// portAsTag takes what follows the first colon for the tag.
func portAsTag(image string) string {
	name, _, tagged := strings.Cut(image, ":")
	if !tagged {
		return image
	}
	return name + ":1"
}

// withoutPort takes the port of a registry for none of its name.
func withoutPort(image string) string {
	host, path, hasPath := strings.Cut(image, "/")
	if !hasPath {
		return image
	}
	host, _, _ = strings.Cut(host, ":")
	return host + "/" + path
}

func anyImage(object map[string]any) bool {
	found := false
	visit(object, func(member string, value any) any {
		image, isText := value.(string)
		found = found || isText && member == "image" && (strings.Contains(image, "@") || withoutPort(image) != image)
		return value
	})
	return found
}

// most is how many entries of a list are read by a check that has no patience.
const most = 32

func cut(object map[string]any) {
	visit(object, func(_ string, value any) any {
		if list, isList := value.([]any); isList && len(list) > most {
			return list[:most]
		}
		return value
	})
}

func isHuge(object map[string]any) bool {
	found := false
	visit(object, func(_ string, value any) any {
		list, isList := value.([]any)
		found = found || isList && len(list) > most
		return value
	})
	return found
}
