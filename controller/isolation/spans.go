// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"net/netip"

	networkingv1 "k8s.io/api/networking/v1"
)

// span is a run of addresses of one family, both ends included.
type span struct{ first, last netip.Addr }

func spanOf(prefix netip.Prefix) span {
	last := prefix.Masked().Addr().AsSlice()
	for bit := prefix.Bits(); bit < len(last)*8; bit++ {
		last[bit/8] |= 0x80 >> (bit % 8)
	}
	end, _ := netip.AddrFromSlice(last) // its length is that of an address
	return span{prefix.Masked().Addr(), end}
}

// readRange reads a range as every enforcer does; false where that cannot be said. Many
// take an IPv4 range that is written as IPv6 (::ffff:10.0.0.0/104) for IPv4, and others
// do not, so it is none.
func readRange(text string) (netip.Prefix, bool) {
	prefix, err := netip.ParsePrefix(text)
	return prefix, err == nil && !prefix.Addr().Is4In6()
}

// spansOf are the addresses of a block without its exceptions; false for one that
// cannot be read.
func spansOf(block *networkingv1.IPBlock) ([]span, bool) {
	prefix, readable := readRange(block.CIDR)
	if !readable {
		return nil, false
	}
	spans := []span{spanOf(prefix)}
	for _, text := range block.Except {
		except, readable := readRange(text)
		if !readable {
			return nil, false
		}
		spans = without(spans, spanOf(except))
	}
	return spans, true
}

// without takes the addresses of one span out of others.
func without(spans []span, cut span) []span {
	var left []span
	for _, s := range spans {
		if s.first.Is4() != cut.first.Is4() || s.last.Less(cut.first) || cut.last.Less(s.first) {
			left = append(left, s)
			continue
		}
		if s.first.Less(cut.first) {
			left = append(left, span{s.first, cut.first.Prev()})
		}
		if cut.last.Less(s.last) {
			left = append(left, span{cut.last.Next(), s.last})
		}
	}
	return left
}
