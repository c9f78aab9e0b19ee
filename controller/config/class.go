// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"encoding/json"
	"slices"
)

// Class is a RuntimeClass of a tier. In the file it is a name, or an object when there
// is more to say.
type Class struct {
	// Name is the name of the RuntimeClass.
	Name string `json:"name"`
	// HostUsers is set on Pods of the class that say nothing about user namespaces:
	// false gives them one of their own. Nil leaves it out, as for runtimes that have
	// no user namespaces and refuse such Pods.
	HostUsers *bool `json:"hostUsers,omitempty"`
}

// Names are the names of the classes, in order of preference.
func (r RuntimeClass) Names() []string {
	names := make([]string, 0, len(r.Classes))
	for _, class := range r.Classes {
		names = append(names, class.Name)
	}
	return names
}

// Class returns the class of that name; the second result is false for one that is
// not of the tier.
func (r RuntimeClass) Class(name string) (Class, bool) {
	i := slices.IndexFunc(r.Classes, func(c Class) bool { return c.Name == name })
	if i < 0 {
		return Class{}, false
	}
	return r.Classes[i], true
}

// UnmarshalJSON reads a name or an object, of which every key has to be known.
func (c *Class) UnmarshalJSON(data []byte) error {
	*c = Class{}
	if trimmed := bytes.TrimSpace(data); len(trimmed) > 0 && trimmed[0] == '"' {
		return json.Unmarshal(trimmed, &c.Name)
	}
	type plain Class
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	return decoder.Decode((*plain)(c))
}

// MarshalJSON writes a name where there is no more to say.
func (c Class) MarshalJSON() ([]byte, error) {
	if c.HostUsers == nil {
		return json.Marshal(c.Name)
	}
	type plain Class
	return json.Marshal(plain(c))
}
