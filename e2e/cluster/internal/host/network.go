// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"fmt"
	"strings"

	"github.com/agent-sandbox-platform/agent-sandbox/e2e/cluster/internal/layout"
)

// MakeWorld gives the process pid, which has a network namespace of its own, the
// addresses of the outside world, and routes them there for packets of Pods
// only: the machine itself may have a real metadata service at the same address.
// The links end with the process.
func MakeWorld(ctx context.Context, pid int) error {
	UnmakeWorld(ctx)
	in := fmt.Sprintf("nsenter --net=/proc/%d/ns/net ip ", pid)
	return all(ctx,
		fmt.Sprintf("ip link add %s type veth peer name %s netns %d", layout.WorldHostLink, layout.WorldPeerLink, pid),
		"ip addr add "+layout.WorldHostIP+"/30 dev "+layout.WorldHostLink,
		"ip link set "+layout.WorldHostLink+" up",
		in+"link set lo up",
		in+"addr add "+layout.WorldPublicIP+"/32 dev lo",
		in+"addr add "+layout.WorldMetaIP+"/32 dev lo",
		in+"addr add "+layout.WorldPeerIP+"/30 dev "+layout.WorldPeerLink,
		"ip addr add "+layout.WorldHostIP6+"/64 dev "+layout.WorldHostLink+" nodad",
		in+"addr add "+layout.WorldPublicIP6+"/128 dev lo",
		in+"addr add "+layout.WorldMetaIP6+"/128 dev lo",
		in+"addr add "+layout.WorldPeerIP6+"/64 dev "+layout.WorldPeerLink+" nodad",
		in+"link set "+layout.WorldPeerLink+" up",
		in+"route add default via "+layout.WorldHostIP,
		in+"route add default via "+layout.WorldHostIP6,
		"ip route add "+layout.WorldPublicIP+"/32 via "+layout.WorldPeerIP+" table "+layout.WorldTable,
		"ip route add "+layout.WorldMetaIP+"/32 via "+layout.WorldPeerIP+" table "+layout.WorldTable,
		"ip rule add from "+layout.PodCIDR+" lookup "+layout.WorldTable,
		"ip -6 route add "+layout.WorldPublicIP6+"/128 via "+layout.WorldPeerIP6+" table "+layout.WorldTable,
		"ip -6 route add "+layout.WorldMetaIP6+"/128 via "+layout.WorldPeerIP6+" table "+layout.WorldTable,
		"ip -6 rule add from "+layout.PodCIDR6+" lookup "+layout.WorldTable,
	)
}

// UnmakeWorld removes what MakeWorld made.
func UnmakeWorld(ctx context.Context) {
	try(ctx,
		"ip rule del from "+layout.PodCIDR+" lookup "+layout.WorldTable,
		"ip -6 rule del from "+layout.PodCIDR6+" lookup "+layout.WorldTable,
		"ip route flush table "+layout.WorldTable,
		"ip -6 route flush table "+layout.WorldTable,
		"ip link del "+layout.WorldHostLink,
	)
}

// MakeNodeDNS gives the node the address at which its own resolver answers.
func MakeNodeDNS(ctx context.Context) error {
	UnmakeNodeDNS(ctx)
	return all(ctx, "ip addr add "+layout.NodeDNSIP+"/32 dev lo")
}

// UnmakeNodeDNS removes what MakeNodeDNS made.
func UnmakeNodeDNS(ctx context.Context) {
	try(ctx, "ip addr del "+layout.NodeDNSIP+"/32 dev lo")
}

// family is one of the two kinds of addresses: the command for its rules and the
// addresses of its Pods.
type family struct{ iptables, pods string }

func families() []family {
	return []family{{"iptables -w", layout.PodCIDR}, {"ip6tables -w", layout.PodCIDR6}}
}

// MakePolicyRules sends the first packet of every connection of a Pod to the
// queue of the NetworkPolicy agent: what is forwarded, and what is for the node
// itself. Without a listener the kernel drops what is queued, so the cluster
// fails closed. The kubelet's probes leave from the node and are not judged.
func MakePolicyRules(ctx context.Context) error {
	UnmakePolicyRules(ctx)
	chain := layout.PolicyChain
	for _, f := range families() {
		if err := all(ctx,
			f.iptables+" -N "+chain,
			f.iptables+" -A "+chain+" -m conntrack --ctstate NEW -j NFQUEUE --queue-num "+layout.PolicyQueue,
			// A machine whose own rules drop what they do not know must pass the rest.
			f.iptables+" -A "+chain+" -m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT",
		); err != nil {
			return fmt.Errorf("this kernel cannot queue packets for the NetworkPolicy agent (it needs xt_NFQUEUE): %w", err)
		}
		if err := all(ctx, prefixed(f.iptables+" -I ", f.jumps())...); err != nil {
			return err
		}
	}
	return nil
}

// UnmakePolicyRules removes what MakePolicyRules made.
func UnmakePolicyRules(ctx context.Context) {
	for _, f := range families() {
		try(ctx, prefixed(f.iptables+" -D ", f.jumps())...)
		try(ctx, f.iptables+" -F "+layout.PolicyChain, f.iptables+" -X "+layout.PolicyChain)
	}
}

// jumps lead to the chain. No policy knows link-local addresses, by which Pods on one
// bridge could pass it: of these only what finds neighbours is let through.
func (f family) jumps() []string {
	jumps := []string{
		"FORWARD -s " + f.pods + " -j " + layout.PolicyChain,
		"FORWARD ! -s " + f.pods + " -d " + f.pods + " -j " + layout.PolicyChain,
		"INPUT -i " + layout.Bridge + " -s " + f.pods + " -j " + layout.PolicyChain,
	}
	if f.pods == layout.PodCIDR6 {
		jumps = append(jumps,
			"FORWARD -i "+layout.Bridge+" -s fe80::/10 ! -p ipv6-icmp -j DROP",
			"INPUT -i "+layout.Bridge+" -s fe80::/10 ! -p ipv6-icmp -j DROP",
		)
	}
	return jumps
}

func prefixed(prefix string, lines []string) []string {
	out := make([]string, len(lines))
	for i, line := range lines {
		out[i] = prefix + line
	}
	return out
}

// componentTables are the nftables tables that components make and leave.
func componentTables() []string {
	return []string{
		"ip kube-proxy", "ip6 kube-proxy", "inet kube-network-policies",
		"inet cni_plugins_masquerade", "ip cni_hostport", "ip6 cni_hostport", "inet cni_hostport",
	}
}

// RemoveNetwork removes the bridge, the links of Pods that outlived them, the
// tables of components, and the connections still tracked for Pods, which a
// new cluster with the same addresses would inherit.
func RemoveNetwork(ctx context.Context) {
	links, _ := command(ctx, "ip", "-o", "link", "show", "master", layout.Bridge)
	for link := range strings.Lines(links) {
		fields := strings.Fields(link)
		if len(fields) > 1 {
			name, _, _ := strings.Cut(strings.TrimSuffix(fields[1], ":"), "@")
			try(ctx, "ip link del "+name)
		}
	}
	try(ctx, "ip link del "+layout.Bridge)
	try(ctx, prefixed("nft delete table ", componentTables())...)
	for _, direction := range []string{"--orig-src", "--orig-dst", "--reply-src"} {
		try(ctx, "conntrack -D "+direction+" "+layout.PodCIDR, "conntrack -D -f ipv6 "+direction+" "+layout.PodCIDR6)
	}
}
