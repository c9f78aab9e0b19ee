// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"k8s.io/utils/clock"
)

// stopPatience is how long a process may take to end by itself.
const stopPatience = 20 * time.Second

// Daemon is a process that this one started.
type Daemon struct {
	name, log string
	command   *exec.Cmd
	ended     chan struct{}
}

// Launch starts a program whose output goes to a file. The caller stops it.
func Launch(name, path, log string, args ...string) (*Daemon, error) {
	return LaunchIn(nil, name, path, log, args...)
}

// LaunchIn is Launch with variables besides those of this process, as NAME=value.
func LaunchIn(environment []string, name, path, log string, args ...string) (*Daemon, error) {
	output, err := os.Create(log)
	if err != nil {
		return nil, fmt.Errorf("log of %s: %w", name, err)
	}
	defer func() { _ = output.Close() }()  // the process has its own handle
	command := exec.Command(path, args...) //nolint:gosec,noctx // It outlives the start's context; stop ends it.
	command.Stdout, command.Stderr = output, output
	command.Env = append(os.Environ(), environment...)
	command.SysProcAttr = diesWithParent()
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	d := &Daemon{name: name, log: log, command: command, ended: make(chan struct{})}
	go func() {
		_ = command.Wait() // how it ended is in its log
		close(d.ended)
	}()
	return d, nil
}

// Failure says that the process has ended, with the end of its log.
func (d *Daemon) Failure() error {
	select {
	case <-d.ended:
	default:
		return nil
	}
	const tail = 4 << 10
	log, err := os.ReadFile(d.log)
	if err != nil {
		return fmt.Errorf("%s ended, and its log is gone: %w", d.name, err)
	}
	return fmt.Errorf("%s ended:\n%s", d.name, log[max(0, len(log)-tail):])
}

// Kill ends the process at once, without letting it know.
func (d *Daemon) Kill() error {
	if err := d.command.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill %s: %w", d.name, err)
	}
	<-d.ended
	return nil
}

// Stop ends the process, by force if it does not end by itself.
func (d *Daemon) Stop() error {
	if d == nil {
		return nil
	}
	if err := d.command.Process.Signal(syscall.SIGTERM); errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	timer := clock.RealClock{}.NewTimer(stopPatience)
	defer timer.Stop()
	select {
	case <-d.ended:
		return nil
	case <-timer.C():
	}
	return d.Kill()
}
