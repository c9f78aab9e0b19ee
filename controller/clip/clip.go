// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clip shortens texts to what the apiserver takes: it refuses longer ones, and all
// that was to be written with them.
package clip

import "strings"

const (
	maxMessage = 32 << 10
	maxNote    = 1 << 10
	maxPart    = 100
	mark       = "..."
)

// Message is a text as the message of a condition, of 32 KiB at most.
func Message(text string) string { return To(text, maxMessage) }

// Note is a text as the note of an Event, of 1 KiB at most.
func Note(text string) string { return To(text, maxNote) }

// Part is a text as one of a few in a note, of 100 bytes at most.
func Part(text string) string { return To(text, maxPart) }

// To is a text of so many bytes at most, three or more, that ends with a character.
func To(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit-len(mark)], "") + mark
}
