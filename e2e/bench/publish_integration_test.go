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

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"
)

var (
	report  = flag.Bool("report", false, "write the tables of a benchmark into README.md")
	profile = flag.String("profile", "", "folder for processor profiles of the controller and the apiserver under each steady load")
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

// record writes profiles of the processor time of the controller and of the apiserver until
// the span is over. It does nothing unless it was asked for.
func (w *world) record(ctx context.Context, name string, span time.Duration) error {
	if *profile == "" {
		return nil
	}
	administrator, err := rest.HTTPClientFor(w.server.Config)
	if err != nil {
		return err
	}
	file := filepath.Join(*profile, strings.NewReplacer(" ", "-", "/", "-").Replace(name))
	path := fmt.Sprintf("/debug/pprof/profile?seconds=%d", int(span.Seconds()))
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return download(ctx, http.DefaultClient, "http://"+w.debug+path, file+".pprof") })
	group.Go(func() error { return download(ctx, administrator, w.server.Config.Host+path, file+"-apiserver.pprof") })
	return group.Wait()
}

// download writes what an address answers into a file.
func download(ctx context.Context, as *http.Client, url, file string) error {
	response, err := fetchAs(ctx, as, url)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }() // it was only read
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	return os.WriteFile(file, content, 0o600)
}
