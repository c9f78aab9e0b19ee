// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"net/netip"
	"slices"

	networkingv1 "k8s.io/api/networking/v1"
)

const (
	allIPv4 = "0.0.0.0/0"
	allIPv6 = "::/0"
)

// specialRanges are the addresses that are not the internet.
func specialRanges() []string {
	return []string{
		"0.0.0.0/8",        // this network
		"10.0.0.0/8",       // private
		"100.64.0.0/10",    // carrier-grade NAT, and the Pods of some clouds
		"127.0.0.0/8",      // loopback
		"168.63.129.16/32", // the platform service of one cloud
		"169.254.0.0/16",   // link-local, and with it metadata services
		"172.16.0.0/12",    // private
		"192.0.0.0/24",     // protocol assignments
		"192.168.0.0/16",   // private
		"198.18.0.0/15",    // benchmarks
		"224.0.0.0/4",      // multicast
		"240.0.0.0/4",      // reserved, and broadcast
		"::/8",             // loopback, and any IPv4 address in disguise: mapped, translated, NAT64
		"2001::/32",        // Teredo: any IPv4 address in disguise
		"2001:2::/48",      // benchmarks
		"2002::/16",        // 6to4: any IPv4 address in disguise
		"fc00::/7",         // unique local, and with it metadata services
		"fe80::/10",        // link-local
		"fec0::/10",        // site-local
		"ff00::/8",         // multicast
	}
}

// internet is every address that is neither special nor the cluster's own.
func internet(clusterCIDRs []string) []networkingv1.NetworkPolicyPeer {
	closed := outermost(append(specialRanges(), clusterCIDRs...))
	var peers []networkingv1.NetworkPolicyPeer
	for _, all := range []string{allIPv4, allIPv6} {
		if slices.Contains(closed, all) {
			continue // the cluster takes the whole family
		}
		peers = append(peers, networkingv1.NetworkPolicyPeer{
			IPBlock: &networkingv1.IPBlock{CIDR: all, Except: within(all, closed)},
		})
	}
	return peers
}

// within keeps the ranges that lie inside a larger one: the apiserver takes no
// others as exceptions.
func within(cidr string, ranges []string) []string {
	outer, readable := readRange(cidr)
	if !readable {
		return nil
	}
	var inside []string
	for _, text := range ranges {
		if inner, readable := readRange(text); readable && covers(outer, inner) && inner != outer {
			inside = append(inside, text)
		}
	}
	return inside
}

// isWithin says whether a range lies inside one of others, or is one of them.
func isWithin(cidr string, ranges []string) bool {
	inner, readable := readRange(cidr)
	return readable && slices.ContainsFunc(ranges, func(text string) bool {
		outer, readable := readRange(text)
		return readable && covers(outer, inner)
	})
}

// outermost sorts the ranges and drops those that lie inside another.
func outermost(ranges []string) []string {
	var prefixes []netip.Prefix
	for _, text := range ranges {
		if prefix, readable := readRange(text); readable { // the configuration was checked when it was read
			prefixes = append(prefixes, prefix.Masked())
		}
	}
	slices.SortFunc(prefixes, netip.Prefix.Compare)
	var kept []string
	var last netip.Prefix
	for _, prefix := range prefixes {
		if last.IsValid() && covers(last, prefix) {
			continue
		}
		last = prefix
		kept = append(kept, prefix.String())
	}
	return kept
}

func covers(outer, inner netip.Prefix) bool {
	return outer.Bits() <= inner.Bits() && outer.Contains(inner.Addr())
}
