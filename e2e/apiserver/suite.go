// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
	ctrl "sigs.k8s.io/controller-runtime"
)

// atOnce is how many tests of a package run at the same time, unless -parallel says
// otherwise: they wait far more than they work.
const atOnce = "8"

// Main runs the tests of a package with one Server for all of them and returns the
// exit code. What the controllers under test log is kept in a file when a test fails.
func Main(m *testing.M, options Options, server **Server) int {
	code, err := runTests(m, options, server)
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

func runTests(m *testing.M, options Options, server **Server) (code int, err error) {
	if err := runAtOnce(); err != nil {
		return 0, err
	}
	log, err := os.CreateTemp("", "controllers-under-test-*.log")
	if err != nil {
		return 0, fmt.Errorf("log of the controllers: %w", err)
	}
	defer func() { err = errors.Join(err, keepOnFailure(log, code)) }()
	logTo(log)
	started, err := Start(context.Background(), options)
	if err != nil {
		return 0, err
	}
	*server = started
	defer func() { err = errors.Join(err, started.Stop()) }()
	return m.Run(), nil
}

// runAtOnce sets -parallel, which is the number of processors by default.
func runAtOnce() error {
	const name = "test.parallel"
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == name })
	if given {
		return nil
	}
	if err := flag.Set(name, atOnce); err != nil {
		return fmt.Errorf("let tests run at once: %w", err)
	}
	return nil
}

// logTo directs what controllers and their libraries log.
func logTo(writer io.Writer) {
	logger := textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(writer)))
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)
}

func keepOnFailure(log *os.File, code int) error {
	logTo(io.Discard)
	if err := log.Close(); err != nil {
		return fmt.Errorf("log of the controllers: %w", err)
	}
	if code == 0 {
		return os.Remove(log.Name())
	}
	_, _ = fmt.Fprintln(os.Stderr, "The controllers under test logged to", filepath.Clean(log.Name()))
	return nil
}
