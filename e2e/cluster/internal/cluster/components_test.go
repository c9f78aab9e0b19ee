// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"
	"strings"
	"testing"

	"github.com/agent-sandbox-platform/agent-sandbox/e2e/cluster/internal/layout"
)

func TestEveryComponentStartsFromTheClustersOwnFolders(t *testing.T) {
	l := layout.New("/state")
	for _, name := range startOrder() {
		t.Run(name, func(t *testing.T) {
			s := spec(l, "192.0.2.7", name)
			if s.Path != "/state/bin/"+name || s.Log != "/state/logs/"+name+".log" {
				t.Errorf("program and log: got %s and %s, want them in /state", s.Path, s.Log)
			}
			for _, arg := range s.Args {
				_, value, _ := strings.Cut(arg, "=")
				if strings.HasPrefix(value, "/") && !strings.HasPrefix(value, "/state/") {
					t.Errorf("argument %s leads out of the state folder", arg)
				}
			}
		})
	}
}

func TestTheApiserverWritesEveryRequestIntoOneAuditLog(t *testing.T) {
	l := layout.New("/state")
	args := spec(l, "192.0.2.7", nameAPIServer).Args
	for _, want := range []string{"--audit-log-path=/state/logs/audit.log", "--audit-policy-file=/state/config/audit.yaml"} {
		if !slices.Contains(args, want) {
			t.Errorf("arguments %v lack %s", args, want)
		}
	}
}

func TestASocketPathFitsTheKernelWhateverTheStateFolder(t *testing.T) {
	const longest = 107
	l := layout.New("/" + strings.Repeat("long/", 40))
	if got := len(l.RunIn("containerd.sock.ttrpc")); got > longest {
		t.Errorf("socket path: got %d bytes, want at most %d", got, longest)
	}
}

func TestOnlyTheWorldGetsANetworkOfItsOwn(t *testing.T) {
	for _, name := range startOrder() {
		if got := spec(layout.New("/state"), "192.0.2.7", name).OwnNetwork; got != (name == nameWorld) {
			t.Errorf("%s: own network %t", name, got)
		}
	}
}
