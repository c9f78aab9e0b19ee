// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// The ranges that the backstop closes are those that the controller closes.
func TestTheBackstopClosesTheSameRanges(t *testing.T) {
	data, err := os.ReadFile("../../charts/agent-sandbox/files/closed-ranges.json")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(specialRanges(), got, cmpopts.SortSlices(func(a, b string) bool { return a < b })); diff != "" {
		t.Errorf("ranges (-controller +chart):\n%s", diff)
	}
}
