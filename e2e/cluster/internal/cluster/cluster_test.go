// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/utils/clock"

	"github.com/agent-sandbox-platform/agent-sandbox/e2e/cluster/internal/process"
)

// on makes the cluster of a state folder of its own on the machine with the
// given shared folder.
func on(t *testing.T, machine string) *Cluster {
	t.Helper()
	c, err := New(filepath.Join(t.TempDir(), "state"), io.Discard, clock.RealClock{})
	if err != nil {
		t.Fatal(err)
	}
	c.machine = machine
	return c
}

// runs starts a shell script in the name of containerd.
func (c *Cluster) runs(t *testing.T, script string) {
	t.Helper()
	c.runsAs(t, nameContainerd, script)
}

// runsAs starts a shell script in the name of a component.
func (c *Cluster) runsAs(t *testing.T, name, script string) process.Identity {
	t.Helper()
	if err := os.MkdirAll(c.paths.In("logs"), 0o700); err != nil {
		t.Fatal(err)
	}
	record, err := process.Start(process.Spec{
		Name: name, Path: "/bin/sh", Args: []string{"-c", script}, Log: c.paths.Log(name),
	}, c.paths.Records())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = process.Stop(t.Context(), clock.RealClock{}, record.Identity, 0) })
	return record.Identity
}

// finished starts scripts in the name of every component of a cluster whose start was
// finished, and a kubectl whose answer about the node is given.
func (c *Cluster) finished(t *testing.T, kubectl string) []process.Identity {
	t.Helper()
	var all []process.Identity
	for _, name := range startOrder() {
		all = append(all, c.runsAs(t, name, "exec sleep 60"))
	}
	if err := os.MkdirAll(c.paths.In("bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	for path, content := range map[string]string{c.paths.ReadyMark(): "", c.paths.Bin("kubectl"): "#!/bin/sh\n" + kubectl} {
		if err := os.WriteFile(path, []byte(content), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

func TestANodeThatIsSlowIsWaitedForAndNotTakenForBroken(t *testing.T) {
	c := on(t, t.TempDir())
	// Two answers say no, the third one yes.
	components := c.finished(t, `asked="$(dirname "$0")/asked"; echo >>"$asked"
[ "$(wc -l <"$asked")" -gt 2 ] && echo "True kubelet is posting ready status" || echo "Unknown Kubelet stopped posting node status."
`)
	if state, err := c.health(t.Context()); state != Slow || err == nil || !strings.Contains(err.Error(), "Kubelet stopped posting") {
		t.Errorf("at once: got %v and %v, want slow and why", state, err)
	}
	if state, err := c.settled(t.Context()); state != Running || err != nil {
		t.Errorf("after a while: got %v and %v, want running", state, err)
	}
	for i, one := range components {
		if !one.Alive() {
			t.Errorf("%s was stopped", startOrder()[i])
		}
	}
}

func TestANodeThatNeverBecomesReadyIsLeftAsItIsAndNamed(t *testing.T) {
	c := on(t, t.TempDir())
	c.patience = 2 * checkInterval
	components := c.finished(t, `echo "False container runtime is down"`)
	err := c.Up(t.Context())
	if err == nil || !strings.Contains(err.Error(), "container runtime is down") || !strings.Contains(err.Error(), "down and up") {
		t.Errorf("up: got %v, want what is wrong and what to do", err)
	}
	for i, one := range components {
		if !one.Alive() {
			t.Errorf("%s was stopped", startOrder()[i])
		}
	}
}

func TestAComponentThatDiesWhileTheNodeIsWaitedForMakesTheClusterBroken(t *testing.T) {
	c := on(t, t.TempDir())
	c.finished(t, `echo "False starting"`)
	c.runsAs(t, nameKubelet, "sleep 1")
	if state, err := c.settled(t.Context()); state != Broken || err == nil || !strings.Contains(err.Error(), nameKubelet) {
		t.Errorf("got %v and %v, want broken and the kubelet named", state, err)
	}
}

func TestAComponentThatDiesWhileItStartsIsReportedByNameWithItsLog(t *testing.T) {
	c := on(t, t.TempDir())
	c.runs(t, "echo cannot read the configuration; exit 1")
	var died *process.DiedError
	if err := c.await(t.Context(), nameContainerd); !errors.As(err, &died) {
		t.Fatalf("await: got %v, want a DiedError", err)
	}
	if died.Name != nameContainerd || died.Tail != "cannot read the configuration" {
		t.Errorf("report: got %+v, want containerd with the end of its log", died)
	}
}

func TestASecondClusterOfAMachineIsRefusedWhileTheFirstLives(t *testing.T) {
	machine := t.TempDir()
	first, second := on(t, machine), on(t, machine)
	if err := first.own(); err != nil {
		t.Fatal(err)
	}
	if err := second.precheckAlone(); err != nil {
		t.Errorf("beside one without processes: got %v, want none", err)
	}
	first.runs(t, "exec sleep 60")
	if err := second.precheckAlone(); err == nil || !strings.Contains(err.Error(), first.paths.Root) {
		t.Errorf("beside one that runs: got %v, want its state folder named", err)
	}
	if err := first.precheckAlone(); err != nil {
		t.Errorf("the first itself: got %v, want none", err)
	}
}

func TestTwoCommandsNeverChangeTheMachineAtOnce(t *testing.T) {
	machine := t.TempDir()
	unlock, err := on(t, machine).lock()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := on(t, machine).lock(); err == nil {
		t.Error("a second lock was given while the first was held")
	}
	unlock()
	unlock, err = on(t, machine).lock()
	if err != nil {
		t.Fatalf("after the first ended: got %v, want none", err)
	}
	unlock()
}

func TestAnUnfinishedStartIsNotTakenForAClusterThatRuns(t *testing.T) {
	c := on(t, t.TempDir())
	if state, err := c.health(t.Context()); state != Absent || err != nil {
		t.Errorf("without a state folder: got %v and %v, want absent", state, err)
	}
	c.runs(t, "exec sleep 60")
	if state, err := c.health(t.Context()); state != Broken || err == nil {
		t.Errorf("with one of the components: got %v and %v, want broken and why", state, err)
	}
}
