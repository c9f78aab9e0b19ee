// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package precheck finds out, before anything is built or started, what on this
// machine would stop the cluster, and says it in one sentence with the remedy.
package precheck

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Facts are what the checks look at.
type Facts struct {
	// UID is the effective user id.
	UID int
	// Missing are the Debian packages that provide tools which were not found.
	Missing []string
	// PortUsers are the ports in use among those needed: port to the name of
	// the process that listens there, or "" when unknown.
	PortUsers map[int]string
	// Cgroups are the names of the cgroup controllers of the kernel.
	Cgroups []string
	// BridgeFilter tells that bridged packets pass the packet filter.
	BridgeFilter bool
	// IPv6 tells that the kernel has IPv6, of which Pods get addresses too.
	IPv6 bool
	// NodeIP is the address of the machine, or "".
	NodeIP string
}

// Check returns the first fault of the facts, nil when the cluster can start.
// ports are the needed ports and who needs them.
func Check(f Facts, ports map[int]string) error {
	if f.UID != 0 {
		return fmt.Errorf("the cluster needs root, and this is user %d: run it again with sudo", f.UID)
	}
	if len(f.Missing) > 0 {
		slices.Sort(f.Missing)
		return fmt.Errorf("programs that the cluster needs are missing, install them with: apt-get install -y %s",
			strings.Join(slices.Compact(f.Missing), " "))
	}
	for _, name := range []string{"memory", "cpu", "pids"} {
		if !slices.Contains(f.Cgroups, name) {
			return fmt.Errorf("the kernel has no %s cgroup, which Pods' limits need: boot it with cgroup_enable=%s", name, name)
		}
	}
	if !f.BridgeFilter {
		return errors.New("the kernel does not filter bridged packets, so Services and NetworkPolicies cannot work: " +
			"load the module with modprobe br_netfilter")
	}
	if !f.IPv6 {
		return errors.New("the kernel has no IPv6, of which every Pod gets an address: boot it without ipv6.disable=1")
	}
	if f.NodeIP == "" {
		return errors.New("this machine has no IPv4 address besides 127.0.0.1, and the cluster needs one: connect it to a network")
	}
	return portFault(f.PortUsers, ports)
}

func portFault(users map[int]string, ports map[int]string) error {
	for _, port := range slices.Sorted(maps.Keys(ports)) {
		user, used := users[port]
		if !used {
			continue
		}
		if user == "" {
			user = "another process"
		}
		return fmt.Errorf("port %d, which %s needs, is in use by %s: stop it and try again", port, ports[port], user)
	}
	return nil
}
