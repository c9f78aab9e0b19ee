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
	if err := os.MkdirAll(c.paths.In("logs"), 0o700); err != nil {
		t.Fatal(err)
	}
	record, err := process.Start(process.Spec{
		Name: nameContainerd, Path: "/bin/sh", Args: []string{"-c", script}, Log: c.paths.Log(nameContainerd),
	}, c.paths.Records())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = process.Stop(t.Context(), clock.RealClock{}, record.Identity, 0) })
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
