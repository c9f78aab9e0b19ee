// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// Spec is a program to start.
type Spec struct {
	// Name is that of the component; Path and Args its command line.
	Name, Path string
	Args       []string
	// Env are additions to the environment of the command.
	Env []string
	// Log is the file that its output is appended to.
	Log string
	// OwnNetwork starts it in a new, empty network namespace.
	OwnNetwork bool
}

// Record is what is remembered about a started component.
type Record struct {
	Name     string   `json:"name"`
	Log      string   `json:"log"`
	Identity Identity `json:"identity"`
}

// Start runs a program detached from the caller: in a session of its own, with
// its output in its log file, recorded in the folder records.
func Start(spec Spec, records string) (Record, error) {
	if err := os.MkdirAll(records, 0o700); err != nil {
		return Record{}, fmt.Errorf("start %s: %w", spec.Name, err)
	}
	log, err := os.OpenFile(spec.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return Record{}, fmt.Errorf("start %s: %w", spec.Name, err)
	}
	defer func() { _ = log.Close() }()
	// A context would end the program together with this command.
	cmd := exec.Command(spec.Path, spec.Args...) //nolint:gosec,noctx // A program of the cluster, and see above.
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), spec.Env...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if spec.OwnNetwork {
		cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWNET
	}
	if err := cmd.Start(); err != nil {
		return Record{}, fmt.Errorf("start %s: %w", spec.Name, err)
	}
	identity, err := Identify(cmd.Process.Pid)
	if err != nil {
		return Record{}, errors.Join(fmt.Errorf("start %s: %w", spec.Name, err), cmd.Process.Kill())
	}
	go cmd.Wait() //nolint:errcheck // Only reaps: whether it runs is asked of the kernel.
	record := Record{Name: spec.Name, Log: spec.Log, Identity: identity}
	return record, record.save(records)
}

func (r Record) save(records string) error {
	raw, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("record of %s: %w", r.Name, err)
	}
	if err := os.WriteFile(filepath.Join(records, r.Name+".json"), raw, 0o600); err != nil {
		return fmt.Errorf("record of %s: %w", r.Name, err)
	}
	return nil
}

// Load reads all records, sorted by name. A folder that does not exist holds
// none, and neither does a record cut short by a crash of the machine.
func Load(records string) ([]Record, error) {
	entries, err := os.ReadDir(records)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("records of processes: %w", err)
	}
	var all []Record
	for _, entry := range entries {
		raw, err := os.ReadFile(filepath.Join(records, entry.Name()))
		if err != nil {
			return nil, fmt.Errorf("records of processes: %w", err)
		}
		var r Record
		if json.Unmarshal(raw, &r) == nil && r.Name != "" {
			all = append(all, r)
		}
	}
	slices.SortFunc(all, func(a, b Record) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}
