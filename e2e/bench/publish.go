// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"k8s.io/utils/clock"

	"github.com/agent-sandbox-platform/agent-sandbox/e2e/apiserver"
)

// Publish puts a text into a section of the document of this package.
func Publish(section, text string) error {
	root, err := apiserver.Root()
	if err != nil {
		return err
	}
	path := filepath.Join(root, "e2e", "bench", "README.md")
	document, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	changed, err := Replace(string(document), section, text)
	if err != nil {
		return err
	}
	return os.WriteFile(path, []byte(changed), 0o600) //nolint:gosec // The path is this package's own.
}

// Machine says on what and when something is measured, and what else the machine does.
func Machine() (string, error) {
	average, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s, %d cores, %s, load average %s", clock.RealClock{}.Now().UTC().Format("2006-01-02 15:04"),
		runtime.NumCPU(), runtime.Version(), strings.Join(strings.Fields(string(average))[:3], " ")), nil
}
