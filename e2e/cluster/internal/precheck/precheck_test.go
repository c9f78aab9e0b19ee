// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package precheck

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func fit() Facts {
	return Facts{Cgroups: []string{"cpu", "memory", "pids"}, BridgeFilter: true, IPv6: true, NodeIP: "192.0.2.7"}
}

func TestAFaultOfTheMachineIsOneSentenceWithItsRemedy(t *testing.T) {
	tests := map[string]struct {
		change func(*Facts)
		want   string
	}{
		"a machine that fits": {change: func(*Facts) {}},
		"not root": {
			change: func(f *Facts) { f.UID = 1000 },
			want:   "the cluster needs root, and this is user 1000: run it again with sudo",
		},
		"two packages missing, one of them for two tools": {
			change: func(f *Facts) { f.Missing = []string{"iptables", "gcc", "iptables"} },
			want:   "programs that the cluster needs are missing, install them with: apt-get install -y gcc iptables",
		},
		"no memory cgroup": {
			change: func(f *Facts) { f.Cgroups = []string{"cpu", "pids"} },
			want:   "the kernel has no memory cgroup, which Pods' limits need: boot it with cgroup_enable=memory",
		},
		"bridged packets unfiltered": {
			change: func(f *Facts) { f.BridgeFilter = false },
			want: "the kernel does not filter bridged packets, so Services and NetworkPolicies cannot work: " +
				"load the module with modprobe br_netfilter",
		},
		"no IPv6": {
			change: func(f *Facts) { f.IPv6 = false },
			want:   "the kernel has no IPv6, of which every Pod gets an address: boot it without ipv6.disable=1",
		},
		"no address": {
			change: func(f *Facts) { f.NodeIP = "" },
			want:   "this machine has no IPv4 address besides 127.0.0.1, and the cluster needs one: connect it to a network",
		},
		"a port in use by a known process": {
			change: func(f *Facts) { f.PortUsers = map[int]string{6443: "nginx (pid 12)"} },
			want:   "port 6443, which kube-apiserver needs, is in use by nginx (pid 12): stop it and try again",
		},
		"a port in use by an unknown process": {
			change: func(f *Facts) { f.PortUsers = map[int]string{6443: ""} },
			want:   "port 6443, which kube-apiserver needs, is in use by another process: stop it and try again",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := fit()
			tc.change(&f)
			got := ""
			if err := Check(f, map[int]string{6443: "kube-apiserver"}); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("fault (-want +got):\n%s", diff)
			}
		})
	}
}

func TestListeningPortsAreReadFromTheKernelsTable(t *testing.T) {
	const table = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 00000000:192B 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4242 1 0
   1: 0100007F:094B 0100007F:1234 01 00000000:00000000 00:00000000 00000000     0        0 4343 1 0
`
	if diff := cmp.Diff(map[int]string{6443: "4242"}, listening(table)); diff != "" {
		t.Errorf("port to inode (-want +got):\n%s", diff)
	}
}

func TestMissingToolsAreNamedByTheirPackage(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "ip"), []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	missing := strings.Join(missingPackages(), " ")
	if strings.Contains(missing, "iproute2") || !strings.Contains(missing, "gcc") {
		t.Errorf("missing packages: got %q, want gcc and not iproute2", missing)
	}
}
