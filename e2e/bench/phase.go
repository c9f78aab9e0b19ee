// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"strings"
	"time"
)

// Phase is what became of requests that were sent at a pace while something happened to
// the webhook.
type Phase struct {
	// What happened, and how long the requests went on.
	What string
	Took time.Duration
	// Due is how many requests the pace demanded, Sent how many were sent.
	Due, Sent int
	// Unchecked were admitted although nobody judged them, Refused were refused in error,
	// UnderWay of them because a replica died that was answering them.
	Unchecked, Refused, UnderWay int
}

// PhaseTable renders phases in Markdown.
func PhaseTable(phases []Phase) string {
	var table strings.Builder
	table.WriteString("| meanwhile | seconds | requests due | sent | a second | admitted unchecked | refused in error | of those under way |\n")
	table.WriteString("|---|---|---|---|---|---|---|---|\n")
	for _, p := range phases {
		fmt.Fprintf(&table, "| %s | %.0f | %d | %d | %.1f | %d | %d | %d |\n",
			p.What, p.Took.Seconds(), p.Due, p.Sent, float64(p.Sent)/max(p.Took.Seconds(), 1e-9), p.Unchecked, p.Refused, p.UnderWay)
	}
	return table.String()
}
