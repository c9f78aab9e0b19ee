// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package clip

import (
	"strings"
	"testing"
)

func TestClip(t *testing.T) {
	cases := map[string]struct {
		text string
		want string
	}{
		"a text that fits":                    {"12345678", "12345678"},
		"a text that does not":                {"123456789", "12345..."},
		"a character that is cut is left out": {"1234\u00e9789", "1234..."},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := To(tc.text, 8); got != tc.want {
				t.Errorf("To() = %q, want %q", got, tc.want)
			}
		})
	}
}

func TestEachTextHasItsLimit(t *testing.T) {
	long := strings.Repeat("x", 100<<10)
	for name, tc := range map[string]struct {
		shorten func(string) string
		want    int
	}{"a message": {Message, 32 << 10}, "a note": {Note, 1 << 10}, "a part of one": {Part, 100}} {
		t.Run(name, func(t *testing.T) {
			if got := len(tc.shorten(long)); got != tc.want {
				t.Errorf("it has %d bytes, want %d", got, tc.want)
			}
		})
	}
}
