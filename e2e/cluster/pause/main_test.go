// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package main_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// The shell starts a child and then becomes pause, which so inherits a child
// that it did not start, as the first process of a shared PID namespace does.
func TestPauseReapsOthersAndStopsWhenTold(t *testing.T) {
	program := filepath.Join(t.TempDir(), "pause")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v: %s", err, out)
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-c", `sleep 1 & echo $!; exec "$0"`, program)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	child, err := strconv.Atoi(line[:len(line)-1])
	if err != nil {
		t.Fatal(err)
	}
	if !goneWithin(child, 20*time.Second) {
		t.Errorf("child %d was not reaped", child)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("pause ended with %v, want exit code 0", err)
	}
}

// goneWithin waits until no process has that id; one that ended but was not
// reaped still has it.
func goneWithin(pid int, limit time.Duration) bool {
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	for {
		if syscall.Kill(pid, 0) == syscall.ESRCH {
			return true
		}
		select {
		case <-ticker.C:
		case <-deadline.C:
			return false
		}
	}
}
