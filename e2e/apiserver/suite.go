// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
	ctrl "sigs.k8s.io/controller-runtime"
)

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
