// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/config"
)

const order = "runtimeClassOrder: [kata, gvisor, runc]\n"

// tierWith is the tier of a configuration with an order and that choice of a runtime.
func tierWith(t *testing.T, choice string) config.RuntimeClass {
	t.Helper()
	p, err := config.Parse([]byte(order + strings.Replace(valid, "{classes: [gvisor]}", choice, 1)))
	if err != nil {
		t.Fatal(err)
	}
	_, tier, _ := p.TierOf("")
	return tier.RuntimeClass
}

func TestAFloorIsReadInTheOrder(t *testing.T) {
	cases := map[string]struct {
		choice string
		// want are the classes under which a Pod may run, of all that there are; "" is none.
		want []string
		// permitted are those that a refusal names.
		permitted []string
	}{
		"no demand":                  {"{classes: [gvisor]}", []string{"", "gvisor", "kata", "runc", "wasm"}, nil},
		"one of the list":            {"{classes: [gvisor, wasm], required: true}", []string{"gvisor", "wasm"}, []string{"gvisor", "wasm"}},
		"a floor in the middle":      {"{classes: [gvisor], floor: gvisor}", []string{"gvisor", "kata"}, []string{"kata", "gvisor"}},
		"the highest floor":          {"{floor: kata}", []string{"kata"}, []string{"kata"}},
		"the lowest floor":           {"{floor: runc}", []string{"gvisor", "kata", "runc"}, []string{"kata", "gvisor", "runc"}},
		"a floor and one of a list":  {"{classes: [gvisor], floor: gvisor, required: true}", []string{"gvisor"}, []string{"gvisor"}},
		"a list above its own floor": {"{classes: [kata], floor: runc, required: true}", []string{"kata"}, []string{"kata"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tier := tierWith(t, tc.choice)
			var got []string
			for _, class := range []string{"", "gvisor", "kata", "runc", "wasm"} {
				if tier.Refusal(class) == "" {
					got = append(got, class)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("classes that may be (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.permitted, tier.Permitted(), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("Permitted() (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheFirstUsableClassIsSelected(t *testing.T) {
	tier := config.RuntimeClass{Classes: []config.Class{{Name: "kata"}, {Name: "gvisor"}}}
	cases := map[string]struct {
		usable, free sets.Set[string]
		want         string
	}{
		"both can start Pods":                          {sets.New("gvisor", "kata", "runc"), sets.New("gvisor", "kata", "runc"), "kata"},
		"the first has no node":                        {sets.New("gvisor", "runc"), sets.New("gvisor", "runc"), "gvisor"},
		"the nodes of the first are cordoned":          {sets.New("gvisor", "kata"), sets.New("gvisor"), "gvisor"},
		"all nodes are cordoned: the Pod waits":        {sets.New("gvisor", "kata", "runc"), sets.New("runc"), "kata"},
		"the one that there is has only cordoned ones": {sets.New("gvisor"), nil, "gvisor"},
		"there is none of the list":                    {sets.New("runc"), sets.New("runc"), ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tier.Select(tc.usable.Has, tc.free.Has); got != tc.want {
				t.Errorf("Select() = %q, want %q", got, tc.want)
			}
		})
	}
}

func TestWhatCannotBeAFloor(t *testing.T) {
	cases := map[string]struct {
		order, choice string
		want          []string
	}{
		"of no order":             {"", "{floor: gvisor}", []string{"tiers[standard].runtimeClass.floor", "gvisor"}},
		"outside of the order":    {order, "{floor: wasm}", []string{"runtimeClass.floor", "wasm", "kata", "gvisor", "runc"}},
		"above a preferred class": {order, "{classes: [kata, runc], floor: gvisor}", []string{"classes[1]", "runc", "write one of kata, gvisor"}},
		"written out":             {order, "{atLeast: [kata]}", []string{"runtimeClass.atLeast", "remove it"}},
		"of an order with one twice": {
			"runtimeClassOrder: [kata, kata]\n", "{floor: kata}", []string{"runtimeClassOrder[1]", "Duplicate", "kata"},
		},
		"of an order with none": {"runtimeClassOrder: ['']\n", "{}", []string{"runtimeClassOrder[0]", "name a RuntimeClass"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := config.Parse([]byte(tc.order + strings.Replace(valid, "{classes: [gvisor]}", tc.choice, 1)))
			if err == nil {
				t.Fatal("the configuration was taken")
			}
			for _, part := range tc.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("Parse() = %q, want it to name %q", err, part)
				}
			}
		})
	}
}
