// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"testing"
	"time"
)

func TestProcessorTimeIsReadBehindAnyName(t *testing.T) {
	cases := map[string]struct {
		stat string
		want time.Duration
		err  bool
	}{
		"a plain name":            {stat: "7 (etcd) S 1 7 7 0 -1 4194560 5 0 0 0 150 50 0 0 20 0 9 0 1", want: 2 * time.Second},
		"a name with parentheses": {stat: "7 (a) b (c) S 1 7 7 0 -1 4194560 5 0 0 0 1 2 0 0 20 0 9 0 1", want: 30 * time.Millisecond},
		"cut short":               {stat: "7 (etcd) S 1 7 7", err: true},
		"no numbers":              {stat: "7 (etcd) S 1 7 7 0 -1 4194560 5 0 0 0 x y 0", err: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := parseCPU([]byte(tc.stat))
			if got != tc.want || (err != nil) != tc.err {
				t.Errorf("parseCPU() = %v, %v, want %v and an error: %t", got, err, tc.want, tc.err)
			}
		})
	}
}
