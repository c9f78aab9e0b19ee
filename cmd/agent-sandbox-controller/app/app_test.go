// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"bytes"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-sandbox-platform/agent-sandbox/cmd/agent-sandbox-controller/app"
)

func TestMainEndsInOneClearSentence(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "platform.yaml")
	if err := os.WriteFile(broken, []byte("defaultTeir: standard\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		args []string
		code int
		// out and errs are parts of what is printed.
		out, errs []string
	}{
		"the version":              {args: []string{"--version"}, out: []string{"agent-sandbox-controller", "go1."}},
		"help":                     {args: []string{"--help"}, errs: []string{"-sandbox-concurrent-workers", "-kubeconfig", "-zap-log-level"}},
		"a flag that nobody knows": {args: []string{"--sandboxes=5"}, code: 2, errs: []string{"-sandboxes"}},
		"several bad flags together": {
			args: []string{"--sandbox-concurrent-workers=0", "--kube-api-burst=0", "--metrics-bind-address=metrics"},
			code: 2,
			errs: []string{
				"--sandbox-concurrent-workers=0: give at least 1", "--kube-api-burst=0: give at least 1", "--metrics-bind-address=metrics: give host:port",
			},
		},
		"a configuration that is not there": {args: []string{"--config=/nowhere/platform.yaml"}, code: 1, errs: []string{"/nowhere/platform.yaml"}},
		"a configuration with a typo":       {args: []string{"--config=" + broken}, code: 1, errs: []string{broken, "defaultTeir"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var out, errs bytes.Buffer
			if code := app.Main(t.Context(), tc.args, &out, &errs); code != tc.code {
				t.Errorf("Main() = %d, want %d", code, tc.code)
			}
			contains(t, "stdout", out.String(), tc.out)
			contains(t, "stderr", errs.String(), tc.errs)
			if tc.code == 1 && strings.Count(errs.String(), "\n") != 1 {
				t.Errorf("stderr is more than one line:\n%s", errs.String())
			}
		})
	}
}

func contains(t *testing.T, stream, text string, parts []string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%s = %q, want it to hold %q", stream, text, part)
		}
	}
}

// Scripts of the API pass these flags and rely on these defaults.
func TestFlagsOfTheAPI(t *testing.T) {
	want := map[string]string{
		"version": "false", "extensions": "false", "leader-elect": "true", "leader-election-namespace": "",
		"metrics-bind-address": ":8080", "health-probe-bind-address": ":8081", "cluster-domain": "cluster.local",
		"sandbox-concurrent-workers": "100", "sandbox-claim-concurrent-workers": "50",
		"sandbox-warm-pool-concurrent-workers": "1", "sandbox-template-concurrent-workers": "1",
		"sandbox-warm-pool-max-batch-size": "300", "sandbox-warm-pool-replenish-delay": "0s",
		"sandbox-warm-pool-max-refill-rate": "0", "sandbox-warm-pool-readiness-grace-period": "5m0s",
		"sandbox-warm-pool-unschedulable-recheck-interval": "1m0s", "enable-warm-pool-eviction": "true",
		"kube-api-qps": "-1", "kube-api-burst": "10", "api-connections": "1", "separate-watch-connection": "false",
		"cache-label-selectors": "false", "disable-claim-events": "false", "disable-claim-observability-annotations": "false",
		"sandbox-write-behind-window": "0s", "enable-tracing": "false", "enable-pprof": "false", "enable-pprof-debug": "false",
		"pprof-block-profile-rate": "1000000", "pprof-mutex-profile-fraction": "10",
	}
	var options app.Options
	flags := flag.NewFlagSet("test", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	options.Bind(flags)
	got := map[string]string{}
	flags.VisitAll(func(f *flag.Flag) {
		if _, contract := want[f.Name]; contract {
			got[f.Name] = f.DefValue
		}
	})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("flags (-want +got):\n%s", diff)
	}
	if err := flags.Parse(nil); err != nil {
		t.Fatal(err)
	}
	if err := options.Validate(); err != nil {
		t.Errorf("Validate() of the defaults = %v", err)
	}
}

// A log of two starts is the same.
func TestRefusalsComeInTheOrderOfTheFlags(t *testing.T) {
	var options app.Options
	flags := flag.NewFlagSet("test", flag.ContinueOnError)
	options.Bind(flags)
	refused := []string{
		"--sandbox-template-concurrent-workers=0", "--sandbox-warm-pool-concurrent-workers=0", "--sandbox-warm-pool-max-batch-size=0",
		"--sandbox-warm-pool-readiness-grace-period=0s", "--sandbox-warm-pool-unschedulable-recheck-interval=0s",
		"--sandbox-warm-pool-replenish-delay=-1s", "--sandbox-warm-pool-yield-to-bindings=-1s", "--sandbox-warm-pool-yield-to-cold-starts=-1s",
	}
	if err := flags.Parse(refused); err != nil {
		t.Fatal(err)
	}
	// One time in two, chance gives the right order too.
	for range 20 {
		var got []string
		for line := range strings.Lines(options.Validate().Error()) {
			arg, _, _ := strings.Cut(line, ": ")
			got = append(got, arg)
		}
		if diff := cmp.Diff(refused, got); diff != "" {
			t.Fatalf("refused (-want +got):\n%s", diff)
		}
	}
}

func TestValidate(t *testing.T) {
	cases := map[string]struct{ arg, want string }{
		"no requests at all":          {"--kube-api-qps=0", "--kube-api-qps=0: give a positive number, or -1 for no bound"},
		"a number that is none":       {"--kube-api-qps=NaN", "--kube-api-qps=NaN: give a positive number"},
		"no workers":                  {"--sandbox-concurrent-workers=-1", "--sandbox-concurrent-workers=-1: give at least 1"},
		"a domain that is none":       {"--cluster-domain=Cluster_Local", "--cluster-domain=Cluster_Local: give a domain such as cluster.local"},
		"an address without a port":   {"--health-probe-bind-address=localhost", "--health-probe-bind-address=localhost: give host:port"},
		"no configuration":            {"--config=", `--config="": give the path`},
		"an endless refill rate":      {"--sandbox-warm-pool-max-refill-rate=+Inf", "--sandbox-warm-pool-max-refill-rate=+Inf: give a number"},
		"a negative refill rate":      {"--sandbox-warm-pool-max-refill-rate=-1", "--sandbox-warm-pool-max-refill-rate=-1: give a number"},
		"no grace for members":        {"--sandbox-warm-pool-readiness-grace-period=0s", "--sandbox-warm-pool-readiness-grace-period=0s: give a positive"},
		"a yield that is over before": {"--sandbox-warm-pool-yield-to-bindings=-1s", "--sandbox-warm-pool-yield-to-bindings=-1s: give a duration"},
		"no members at a time":        {"--sandbox-warm-pool-max-batch-size=0", "--sandbox-warm-pool-max-batch-size=0: give at least 1"},
		"no connections":              {"--api-connections=0", "--api-connections=0: give at least 1"},
		"no metrics are fine":         {"--metrics-bind-address=0", ""},
		"an IPv6 address is fine":     {"--metrics-bind-address=[::1]:8080", ""},
		"a bounded rate is fine too":  {"--kube-api-qps=50", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var options app.Options
			flags := flag.NewFlagSet("test", flag.ContinueOnError)
			options.Bind(flags)
			if err := flags.Parse([]string{tc.arg}); err != nil {
				t.Fatal(err)
			}
			err := options.Validate()
			if (err == nil) != (tc.want == "") || (err != nil && !strings.HasPrefix(err.Error(), tc.want)) {
				t.Errorf("Validate() = %v, want %q", err, tc.want)
			}
		})
	}
}
