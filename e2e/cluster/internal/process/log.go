// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// tailBytes bounds what is read of a log for its last lines.
const tailBytes = 64 << 10

// Tail returns the last n lines of a log file; a file that does not exist has
// none.
func Tail(path string, n int) (string, error) {
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("end of log: %w", err)
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return "", fmt.Errorf("end of log: %w", err)
	}
	raw, err := io.ReadAll(io.NewSectionReader(file, max(0, info.Size()-tailBytes), tailBytes))
	if err != nil {
		return "", fmt.Errorf("end of log: %w", err)
	}
	return lastLines(raw, n), nil
}

func lastLines(raw []byte, n int) string {
	lines := strings.Split(string(bytes.TrimRight(raw, "\n")), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// DiedError says that a component is not running any more.
type DiedError struct {
	Name, Log, Tail string
}

// Error names the component, its log file and the end of that file.
func (e *DiedError) Error() string {
	return fmt.Sprintf("%s stopped running; the end of its log %s:\n%s", e.Name, e.Log, e.Tail)
}

// Check returns a *DiedError for the first record whose process has ended.
func Check(records []Record) error {
	for _, r := range records {
		if r.Identity.Alive() {
			continue
		}
		const lines = 20
		tail, err := Tail(r.Log, lines)
		if err != nil {
			tail = err.Error()
		}
		return &DiedError{Name: r.Name, Log: r.Log, Tail: tail}
	}
	return nil
}

// Copy writes a whole log file to out.
func Copy(out io.Writer, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("log: %w", err)
	}
	defer func() { _ = file.Close() }()
	if _, err := io.Copy(out, file); err != nil {
		return fmt.Errorf("log: %w", err)
	}
	return nil
}
