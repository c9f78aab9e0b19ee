// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOnlyMountsOfTheClustersFoldersAreFoundTheLatestFirst(t *testing.T) {
	const table = `22 1 254:0 / / rw - ext4 /dev/vda rw
30 22 0:1 / /state/kubelet/pods/a rw - tmpfs none rw
31 30 0:2 / /state/kubelet/pods/a/b\040c rw - tmpfs none rw
32 22 0:3 / /state-of-another rw - tmpfs none rw
33 22 0:4 / /run/x rw - tmpfs none rw
`
	want := []string{"/run/x", "/state/kubelet/pods/a/b c", "/state/kubelet/pods/a"}
	if diff := cmp.Diff(want, mountsBelow(table, []string{"/state", "/run/x"})); diff != "" {
		t.Errorf("mounts (-want +got):\n%s", diff)
	}
}

func TestTheSettingsOfBeforeAreNotOverwrittenByALaterRun(t *testing.T) {
	file := filepath.Join(t.TempDir(), "saved.json")
	const before = `{"settings":{"net.ipv4.ip_forward":"0"}}`
	if err := os.WriteFile(file, []byte(before), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Save(t.Context(), file); err != nil {
		t.Fatal(err)
	}
	after, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, string(after)); diff != "" {
		t.Errorf("saved settings (-want +got):\n%s", diff)
	}
}

func TestEveryRuleThatIsMadeIsRemovedByTheSameWords(t *testing.T) {
	want := []string{
		"iptables -w -D FORWARD -s 10.244.0.0/16 -j AGENT-SANDBOX-POLICY",
		"iptables -w -D FORWARD ! -s 10.244.0.0/16 -d 10.244.0.0/16 -j AGENT-SANDBOX-POLICY",
		"iptables -w -D INPUT -i asbr0 -s 10.244.0.0/16 -j AGENT-SANDBOX-POLICY",
		"ip6tables -w -D FORWARD -s fd00:10:244::/56 -j AGENT-SANDBOX-POLICY",
		"ip6tables -w -D FORWARD ! -s fd00:10:244::/56 -d fd00:10:244::/56 -j AGENT-SANDBOX-POLICY",
		"ip6tables -w -D INPUT -i asbr0 -s fd00:10:244::/56 -j AGENT-SANDBOX-POLICY",
		"ip6tables -w -D FORWARD -i asbr0 -s fe80::/10 ! -p ipv6-icmp -j DROP",
		"ip6tables -w -D INPUT -i asbr0 -s fe80::/10 ! -p ipv6-icmp -j DROP",
	}
	var got []string
	for _, f := range families() {
		got = append(got, prefixed(f.iptables+" -D ", f.jumps())...)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
}

func TestATableOfTheFilterIsUnusedOnlyWithoutRulesAndChainsOfOthers(t *testing.T) {
	const empty = "*filter\n:INPUT ACCEPT [0:0]\n:FORWARD ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\nCOMMIT\n"
	tests := map[string]struct {
		saved string
		want  bool
	}{
		"nothing but the built-in chains": {saved: empty},
		"no table at all":                 {saved: ""},
		"a rule":                          {saved: empty + "-A INPUT -j DROP\n", want: true},
		"a chain of somebody":             {saved: empty + ":DOCKER - [0:0]\n", want: true},
		"a built-in chain that drops":     {saved: empty + ":FORWARD DROP [0:0]\n", want: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := hasRules(tc.saved); got != tc.want {
				t.Errorf("has rules: got %t, want %t", got, tc.want)
			}
		})
	}
}

func TestCgroupHierarchiesOfBothVersionsAreFound(t *testing.T) {
	const table = `30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - tmpfs none rw
31 30 0:27 / /sys/fs/cgroup/memory rw,nosuid shared:10 - cgroup none rw,memory
32 30 0:28 / /sys/fs/cgroup/unified rw,nosuid - cgroup2 none rw
`
	want := []string{"/sys/fs/cgroup/memory", "/sys/fs/cgroup/unified"}
	if diff := cmp.Diff(want, cgroupMounts(table)); diff != "" {
		t.Errorf("hierarchies (-want +got):\n%s", diff)
	}
}
