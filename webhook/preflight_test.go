// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"io"
	"strings"
	"testing"
)

func TestPreflightSaysWhatItMisses(t *testing.T) {
	cases := map[string]struct {
		args []string
		want string
	}{
		"no namespace":          {[]string{"preflight", "--image=a"}, "--namespace and --image must be set"},
		"no image":              {[]string{"preflight", "--namespace=a"}, "--namespace and --image must be set"},
		"no configuration":      {[]string{"preflight", "--namespace=a", "--image=b", "--config=/nowhere"}, "/nowhere"},
		"an unknown flag":       {[]string{"preflight", "--wait"}, "-wait"},
		"no address to serve":   {[]string{"preflight-serve"}, "wants one address"},
		"an address that is no": {[]string{"preflight-serve", "nowhere"}, "listen"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := Main(t.Context(), tc.args, io.Discard)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("Main(%q) = %v, want it to say %q", tc.args, err, tc.want)
			}
		})
	}
}
