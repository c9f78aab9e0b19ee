// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"net"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

// Defaults of flags.
const (
	defaultConfig            = "/etc/agent-sandbox/platform.yaml"
	defaultSandboxWorkers    = 100
	defaultBurst             = 10
	defaultBlockProfileRate  = 1_000_000
	defaultMutexProfileShare = 10
	maxWriteBehind           = time.Second
)

// Options are what the command line says.
type Options struct {
	// Version prints the version and ends.
	Version bool
	// Config is the path of the platform configuration.
	Config string
	// Extensions turns the controllers of templates, pools and claims on.
	Extensions bool
	// LeaderElect lets one replica work while the others wait.
	LeaderElect bool
	// LeaderElectionNamespace is where the Lease lies; empty for our own namespace.
	LeaderElectionNamespace string
	// MetricsBindAddress serves metrics; "0" serves none.
	MetricsBindAddress string
	// HealthProbeBindAddress serves /healthz and /readyz; "0" serves none.
	HealthProbeBindAddress string
	// ClusterDomain ends the names of Services.
	ClusterDomain string
	// SandboxConcurrentWorkers is how many Sandboxes are worked on at once.
	SandboxConcurrentWorkers int
	// WriteBehind is how long the metadata of a Pod may wait after a claim took its
	// Sandbox; more than maxWriteBehind counts as that.
	WriteBehind time.Duration
	// KubeAPIQPS is how many requests a second the apiserver gets; below 0 for no
	// bound of our own.
	KubeAPIQPS float64
	// KubeAPIBurst is how many requests may come at once when KubeAPIQPS bounds them.
	KubeAPIBurst int
	// Connections are what concerns the connections to the apiserver.
	Connections ConnectionOptions
	// CacheLabelSelectors keeps only Pods and Services with the tracking label.
	CacheLabelSelectors bool
	// Claims are what concerns claims.
	Claims ClaimOptions
	// Pools are what concerns templates and pools.
	Pools PoolOptions
	// Audit is what concerns the policies and the audit.
	Audit AuditOptions
	// Tracing sends traces to where the environment variables of OpenTelemetry say.
	Tracing bool
	// Profiling serves profiles on the port of the metrics.
	Profiling Profiling
	// Zap says how to log.
	Zap zap.Options
}

// Profiling says which profiles are served.
type Profiling struct {
	// CPU serves /debug/pprof/profile.
	CPU bool
	// All serves everything below /debug/pprof.
	All bool
	// BlockRate and MutexFraction are the rates at which All samples.
	BlockRate, MutexFraction int
}

// Bind declares the flags.
func (o *Options) Bind(flags *flag.FlagSet) {
	flags.BoolVar(&o.Version, "version", false, "Print the version and exit.")
	flags.StringVar(&o.Config, "config", defaultConfig, "Path of the platform configuration.")
	flags.BoolVar(&o.LeaderElect, "leader-elect", true, "Let one replica work while the others stand by.")
	flags.StringVar(&o.LeaderElectionNamespace, "leader-election-namespace", "",
		"Namespace of the Lease. Empty means the namespace this process runs in.")
	flags.StringVar(&o.MetricsBindAddress, "metrics-bind-address", ":8080", "Address of the metrics (plain HTTP); 0 serves none.")
	flags.StringVar(&o.HealthProbeBindAddress, "health-probe-bind-address", ":8081", "Address of /healthz and /readyz; 0 serves none.")
	flags.StringVar(&o.ClusterDomain, "cluster-domain", "cluster.local", "Domain of the cluster, which ends the names of Services.")
	flags.IntVar(&o.SandboxConcurrentWorkers, "sandbox-concurrent-workers", defaultSandboxWorkers, "Sandboxes worked on at once.")
	flags.DurationVar(&o.WriteBehind, "sandbox-write-behind-window", 0,
		"How long the metadata of a Pod may wait after a claim took its Sandbox, so that claims go first; more than 1s counts as 1s.")
	flags.Float64Var(&o.KubeAPIQPS, "kube-api-qps", -1, "Requests a second to the apiserver; negative for no bound of our own.")
	flags.IntVar(&o.KubeAPIBurst, "kube-api-burst", defaultBurst, "Requests to the apiserver at once, when --kube-api-qps bounds them.")
	flags.BoolVar(&o.CacheLabelSelectors, "cache-label-selectors", false,
		"Keep only Pods and Services with the label agents.x-k8s.io/sandbox-name-hash in memory. "+
			"Those that wait to be adopted must then have it too.")
	flags.BoolVar(&o.Tracing, "enable-tracing", false,
		"Send traces by OTLP over gRPC to where OTEL_EXPORTER_OTLP_ENDPOINT and its like say.")
	flags.BoolVar(&o.Profiling.CPU, "enable-pprof", false, "Serve /debug/pprof/profile on the address of the metrics.")
	flags.BoolVar(&o.Profiling.All, "enable-pprof-debug", false, "Serve all of /debug/pprof on the address of the metrics.")
	flags.IntVar(&o.Profiling.BlockRate, "pprof-block-profile-rate", defaultBlockProfileRate,
		"Nanoseconds blocked for each sample, with --enable-pprof-debug.")
	flags.IntVar(&o.Profiling.MutexFraction, "pprof-mutex-profile-fraction", defaultMutexProfileShare,
		"One in how many contentions is sampled, with --enable-pprof-debug.")
	flags.BoolVar(&o.Extensions, "extensions", false, "Run the controllers of templates, pools and claims.")
	o.Connections.Bind(flags)
	o.Claims.Bind(flags)
	o.Pools.Bind(flags)
	o.Audit.Bind(flags)
	o.Zap.BindFlags(flags)
}

// Validate lists every flag that cannot be used, its value and the remedy.
func (o *Options) Validate() error {
	var errs []error
	refuse := func(name string, value any, remedy string) {
		errs = append(errs, fmt.Errorf("--%s=%v: %s", name, value, remedy))
	}
	if o.SandboxConcurrentWorkers < 1 {
		refuse("sandbox-concurrent-workers", o.SandboxConcurrentWorkers, "give at least 1")
	}
	if o.WriteBehind < 0 {
		refuse("sandbox-write-behind-window", o.WriteBehind, "give a duration such as 100ms, or 0 for no delay")
	}
	o.Connections.validate(refuse)
	o.Claims.validate(refuse)
	o.Pools.validate(refuse)
	o.Audit.validate(refuse)
	if o.Audit.Interval > 0 && !o.Extensions {
		refuse("audit-interval", o.Audit.Interval, "the audit judges templates, pools and claims too: set --extensions")
	}
	if o.KubeAPIBurst < 1 {
		refuse("kube-api-burst", o.KubeAPIBurst, "give at least 1")
	}
	if math.IsNaN(o.KubeAPIQPS) || o.KubeAPIQPS == 0 || math.IsInf(o.KubeAPIQPS, 0) {
		refuse("kube-api-qps", o.KubeAPIQPS, "give a positive number, or -1 for no bound")
	}
	if problems := validation.IsDNS1123Subdomain(o.ClusterDomain); len(problems) > 0 {
		refuse("cluster-domain", o.ClusterDomain, "give a domain such as cluster.local: "+strings.Join(problems, "; "))
	}
	if o.Config == "" {
		refuse("config", `""`, "give the path of the platform configuration")
	}
	for _, served := range []struct{ flag, address string }{
		{"metrics-bind-address", o.MetricsBindAddress}, {"health-probe-bind-address", o.HealthProbeBindAddress},
	} {
		if _, _, err := net.SplitHostPort(served.address); err != nil && served.address != "0" {
			refuse(served.flag, served.address, "give host:port such as :8080, or 0 to serve none")
		}
	}
	return errors.Join(errs...)
}
