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
	"strings"
	"testing"
	"time"
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
	check(tb, Publish(section, text))
}

// machine says on what and when something is measured, and what else the machine does.
func machine(tb testing.TB) string {
	tb.Helper()
	text, err := Machine()
	check(tb, err)
	return text
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
