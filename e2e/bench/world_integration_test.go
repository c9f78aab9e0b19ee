// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package bench

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agent-sandbox-platform/agent-sandbox/e2e/apiserver"
)

const (
	namespace = "team-a"
	// user is the chart's controller to the apiserver.
	user  = "system:serviceaccount:" + releaseNamespace + ":agent-sandbox-controller"
	nodes = 4
	// patience bounds a hang.
	patience = 3 * time.Minute
	glimpse  = 100 * time.Millisecond
)

// subject is a controller under load.
type subject struct {
	// product says how it is built and what has to be installed.
	product *apiserver.Product
	// objects are what else is installed, in the namespace of the release.
	objects []*unstructured.Unstructured
	// flags are those of its process. Of a flag that is there twice the second counts.
	flags []string
}

// world is a cluster of fake nodes with a controller as it is shipped.
type world struct {
	testing.TB

	server *apiserver.Server
	// admin reads and writes as an administrator.
	admin      client.WithWatch
	controller *apiserver.Process
	// debug is the address of the controller's profiles.
	debug string
}

// newWorld starts a world that ends with the test.
func newWorld(tb testing.TB, s subject) *world {
	tb.Helper()
	ctx := tb.Context()
	ctrl.SetLogger(logr.Discard()) // the clients' library complains when there is none
	server, err := apiserver.Start(ctx, apiserver.Options{Product: s.product})
	check(tb, err)
	w := &world{TB: tb, server: server}
	tb.Cleanup(func() { check(tb, server.Stop()) })
	w.admin, err = apiserver.NewClient(server.Config)
	check(tb, err)
	check(tb, server.AddNodes(ctx, nodes))
	for _, name := range []string{namespace, releaseNamespace} {
		check(tb, w.admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	}
	for _, object := range s.objects {
		check(tb, w.admin.Create(ctx, object))
	}
	w.startController(ctx, s)
	return w
}

func check(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// startController builds the controller as it is shipped and runs it, alone and with its
// profiles.
func (w *world) startController(ctx context.Context, s subject) {
	w.Helper()
	shipped, err := w.server.Build(ctx)
	check(w, err)
	w.controller, err = shipped.Launch(ctx, user, slices.Concat(s.flags, []string{"--leader-elect=false", "--enable-pprof-debug"})...)
	check(w, err)
	w.debug = w.controller.Metrics
	w.Cleanup(func() { check(w, w.controller.Stop()) })
	w.await(ctx, "the controller is ready and serves its profiles", func(ctx context.Context) error {
		response, err := fetch(ctx, "http://"+w.controller.Health+"/readyz")
		if err != nil {
			return err
		}
		_, err = readHeap(ctx, w.debug)
		return errors.Join(err, response.Body.Close())
	})
}

// restartController runs it with other flags.
func (w *world) restartController(ctx context.Context, s subject) {
	w.Helper()
	check(w, w.controller.Stop())
	w.startController(ctx, s)
}

// await asks again and again until done has no error.
func (w *world) await(ctx context.Context, what string, done func(context.Context) error) {
	w.Helper()
	var last error
	err := wait.PollUntilContextTimeout(ctx, glimpse, patience, true, func(ctx context.Context) (bool, error) {
		if err := errors.Join(w.controller.Failure(), w.server.Failure()); err != nil {
			return false, err
		}
		last = done(ctx)
		return last == nil, nil
	})
	if err != nil {
		w.Fatalf("gave up waiting until %s: %v: %v", what, err, last)
	}
}

// writes are those that the controller has done so far.
func (w *world) writes(ctx context.Context) apiserver.Counts {
	w.Helper()
	check(w, w.server.Audit.Settle(ctx, w.server.Config))
	counts, err := w.server.Audit.Writes(apiserver.Filter{User: user})
	check(w, err)
	return counts
}

// heap is how many bytes the controller uses after a collection.
func (w *world) heap(ctx context.Context) int {
	w.Helper()
	bytes, err := readHeap(ctx, w.debug)
	check(w, err)
	return bytes
}

func readHeap(ctx context.Context, debug string) (int, error) {
	const mark = "# HeapAlloc = "
	response, err := fetch(ctx, "http://"+debug+"/debug/pprof/heap?gc=1&debug=1")
	if err != nil {
		return 0, err
	}
	defer func() { _ = response.Body.Close() }() // it was only read
	var seen bytes.Buffer
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		if value, found := strings.CutPrefix(lines.Text(), mark); found {
			return strconv.Atoi(value)
		}
		seen.Write(lines.Bytes())
	}
	return 0, errors.Join(lines.Err(), fmt.Errorf("the profile does not say %q: %.200s", mark, seen.String()))
}
