// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	discoveryv1 "k8s.io/api/discovery/v1"
)

func TestTheAPIServersAddressesAreRangesOfTheCluster(t *testing.T) {
	slice := func(addresses ...string) discoveryv1.EndpointSlice {
		return discoveryv1.EndpointSlice{Endpoints: []discoveryv1.Endpoint{{Addresses: addresses}}}
	}
	cases := map[string]struct {
		cidrs  []string
		slices []discoveryv1.EndpointSlice
		want   []string
	}{
		"addresses of both families": {
			[]string{"10.0.0.0/8"}, []discoveryv1.EndpointSlice{slice("203.0.113.7"), slice("2001:db8::7")},
			[]string{"10.0.0.0/8", "203.0.113.7/32", "2001:db8::7/128"},
		},
		"an address that is listed twice": {nil, []discoveryv1.EndpointSlice{slice("203.0.113.7", "203.0.113.7")}, []string{"203.0.113.7/32"}},
		"a name instead of an address":    {nil, []discoveryv1.EndpointSlice{slice("api.example.com")}, nil},
		"no endpoints":                    {[]string{"10.0.0.0/8"}, nil, []string{"10.0.0.0/8"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, withAddresses(tc.cidrs, tc.slices)); diff != "" {
				t.Errorf("withAddresses() (-want +got):\n%s", diff)
			}
		})
	}
}
