// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package bench

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/agent-sandbox-platform/agent-sandbox/e2e/apiserver"
)

var (
	report  = flag.Bool("report", false, "write the tables of a benchmark into README.md")
	profile = flag.String("profile", "", "folder for a processor profile of the controller under each steady load")
)

// publish prints a section and, when asked to, puts it into the document of this
// package.
func publish(tb testing.TB, section, text string) {
	tb.Helper()
	_, err := fmt.Fprintf(os.Stdout, "\n%s\n", text)
	check(tb, err)
	if !*report {
		return
	}
	root, err := apiserver.Root()
	check(tb, err)
	path := filepath.Join(root, "e2e", "bench", "README.md")
	document, err := os.ReadFile(path)
	check(tb, err)
	changed, err := Replace(string(document), section, text)
	check(tb, err)
	check(tb, os.WriteFile(path, []byte(changed), 0o600))
}

// machine says on what and when something is measured, and what else the machine does.
func machine(tb testing.TB) string {
	tb.Helper()
	average, err := os.ReadFile("/proc/loadavg")
	check(tb, err)
	return fmt.Sprintf("%s, %d cores, %s, load average %s", clock.RealClock{}.Now().UTC().Format("2006-01-02 15:04"),
		runtime.NumCPU(), runtime.Version(), strings.Join(strings.Fields(string(average))[:3], " "))
}

// record writes a profile of the controller's processor time until the context ends.
// It does nothing unless it was asked for.
func (w *world) record(ctx context.Context, name string, span time.Duration) error {
	if *profile == "" {
		return nil
	}
	url := fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%d", w.debug, int(span.Seconds()))
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }() // it was only read
	samples, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(*profile, strings.NewReplacer(" ", "-", "/", "-").Replace(name)+".pprof"), samples, 0o600)
}
