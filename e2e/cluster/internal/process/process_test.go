// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/clock"
)

func TestTheStartTimeIsFoundWhateverTheProgramIsCalled(t *testing.T) {
	const after = " S 1 1 1 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4711 0 0"
	tests := map[string]struct {
		line string
		want uint64
		fail bool
	}{
		"a plain name":                  {line: "12 (etcd)" + after, want: 4711},
		"a name with a space":           {line: "12 (my etcd)" + after, want: 4711},
		"a name that closes a bracket":  {line: "12 (a) R 1 2)" + after, want: 4711},
		"a line that was cut short":     {line: "12 (etcd) S 1 1", fail: true},
		"no name at all":                {line: "12 etcd S", fail: true},
		"a start time that is a letter": {line: "12 (etcd)" + strings.Replace(after, "4711", "x", 1), fail: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := parseStat(tc.line)
			if (err != nil) != tc.fail || got.startTime != tc.want {
				t.Errorf("got %d and %v, want %d and failure %t", got.startTime, err, tc.want, tc.fail)
			}
		})
	}
}

func start(t *testing.T, script string) Record {
	t.Helper()
	dir := t.TempDir()
	record, err := Start(Spec{
		Name: "sleeper", Path: "/bin/sh", Args: []string{"-c", script}, Log: filepath.Join(dir, "log"),
	}, filepath.Join(dir, "records"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = Stop(t.Context(), clock.RealClock{}, record.Identity, 0) })
	loaded, err := Load(filepath.Join(dir, "records"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Record{record}, loaded); diff != "" {
		t.Fatalf("records (-want +got):\n%s", diff)
	}
	return record
}

func TestARecordedProcessIsStoppedEvenWhenItRefusesToEnd(t *testing.T) {
	for name, script := range map[string]string{
		"a polite one": "exec sleep 60", "a stubborn one": "trap '' TERM; while :; do sleep 0.05; done",
	} {
		t.Run(name, func(t *testing.T) {
			record := start(t, script)
			if !record.Identity.Alive() {
				t.Fatal("the started process is not alive")
			}
			if err := Stop(t.Context(), clock.RealClock{}, record.Identity, 300*time.Millisecond); err != nil {
				t.Fatal(err)
			}
			if record.Identity.Alive() {
				t.Error("the stopped process is still alive")
			}
		})
	}
}

func TestAProcessThatGotTheIdOfARecordedOneIsLeftAlone(t *testing.T) {
	other := exec.CommandContext(t.Context(), "sleep", "60")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Process.Kill(); _ = other.Wait() })
	id, err := Identify(other.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	for name, recorded := range map[string]Identity{
		"it started at another time": {PID: id.PID, StartTime: id.StartTime - 1, Boot: id.Boot},
		"it started in another boot": {PID: id.PID, StartTime: id.StartTime, Boot: "other"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := Stop(t.Context(), clock.RealClock{}, recorded, 0); err != nil {
				t.Fatal(err)
			}
			if !id.Alive() {
				t.Fatal("a process that was never recorded was killed")
			}
		})
	}
}

func TestADeadComponentIsReportedWithTheEndOfItsLog(t *testing.T) {
	record := start(t, "for i in $(seq 30); do echo line $i; done")
	for record.Identity.Alive() {
		<-clock.RealClock{}.After(poll)
	}
	var died *DiedError
	if err := Check([]Record{record}); !errors.As(err, &died) {
		t.Fatalf("check: got %v, want a DiedError", err)
	}
	lines := strings.Split(died.Tail, "\n")
	if len(lines) != 20 || lines[0] != "line 11" || lines[19] != "line 30" {
		t.Errorf("tail: got %q, want line 11 to line 30", died.Tail)
	}
}

func TestOnlyProcessesOfTheFolderWithTheArgumentMatch(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile("/bin/sleep")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "sleep")
	if err := os.WriteFile(path, raw, 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), path, "61")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	for argument, want := range map[string]int{"61": 1, "6": 0} {
		found, err := Matching([]string{dir}, argument)
		if err != nil {
			t.Fatal(err)
		}
		if len(found) != want {
			t.Errorf("argument %q: got %d processes, want %d", argument, len(found), want)
		}
	}
}
