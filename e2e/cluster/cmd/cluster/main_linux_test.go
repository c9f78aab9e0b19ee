// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAWrongCommandEndsInOneSentence(t *testing.T) {
	tests := map[string]struct {
		args []string
		want string
	}{
		"no command":            {want: "name a command"},
		"an unknown command":    {args: []string{"start"}, want: `no command is called "start": run cluster without one to see them all`},
		"a missing argument":    {args: []string{"load"}, want: "the command load got 0 arguments: run cluster without a command to see what it takes"},
		"an argument too much":  {args: []string{"up", "now"}, want: "the command up got 1 arguments: run cluster without a command to see what it takes"},
		"the root as its state": {args: []string{"-state", "/", "status"}, want: "the state folder cannot be /: it is deleted when the cluster stops"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			err := run(t.Context(), tc.args, &bytes.Buffer{})
			if err == nil {
				t.Fatal("the command succeeded")
			}
			if diff := cmp.Diff(tc.want, err.Error()); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPathsAreThoseOfTheStateFolderThatWasNamed(t *testing.T) {
	byFlag, byVariable := t.TempDir(), t.TempDir()
	t.Setenv(stateVariable, byVariable)
	tests := map[string]struct {
		args []string
		want string
	}{
		"by the environment":         {args: []string{"kubeconfig"}, want: filepath.Join(byVariable, "kubeconfig")},
		"by the flag, which is more": {args: []string{"-state", byFlag, "kubeconfig"}, want: filepath.Join(byFlag, "kubeconfig")},
		"the audit log":              {args: []string{"audit-log"}, want: filepath.Join(byVariable, "logs", "audit.log")},
		"kubectl":                    {args: []string{"kubectl-path"}, want: filepath.Join(byVariable, "bin", "kubectl")},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if err := run(t.Context(), tc.args, &out); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want+"\n", out.String()); diff != "" {
				t.Errorf("printed (-want +got):\n%s", diff)
			}
		})
	}
}
