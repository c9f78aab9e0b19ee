// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"net/http"
	"os"
	"time"

	reportsv1alpha1 "github.com/openreports/reports-api/apis/openreports.io/v1alpha1"
	"k8s.io/apimachinery/pkg/labels"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/audit"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/config"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/judge"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/policysource"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/surroundings"
	"github.com/agent-sandbox-platform/agent-sandbox/policies/engine"
)

// AuditOptions are what the command line says of the policies and of the audit.
type AuditOptions struct {
	// PolicyNamespace is where the policy ConfigMaps are; empty judges nothing.
	PolicyNamespace string
	// Judged selects the namespaces whose objects admission judges, by their labels.
	Judged string
	// Interval is how often everything is judged again; 0 audits nothing.
	Interval time.Duration
	// CPUShare is the share of one CPU that the audit takes at most.
	CPUShare float64
	// Reports writes reports of openreports.io.
	Reports bool
}

// Bind declares the flags.
func (o *AuditOptions) Bind(flags *flag.FlagSet) {
	flags.StringVar(&o.PolicyNamespace, "policy-namespace", os.Getenv("POD_NAMESPACE"),
		"Namespace of the policy ConfigMaps; by default that of the Pod, from POD_NAMESPACE. Empty loads no policies: "+
			"claims then get Sandboxes of pools that nobody has judged since they were made, and there is no audit.")
	flags.StringVar(&o.Judged, "policy-namespace-selector", "",
		"Labels of the namespaces whose objects are judged, as in kubectl get -l; the same as admission's. Empty means all.")
	flags.DurationVar(&o.Interval, "audit-interval", 0,
		"How often every stored object is judged again, besides whenever what it is judged by changes; 0 audits nothing.")
	flags.Float64Var(&o.CPUShare, "audit-cpu-share", 0.1, "Share of one CPU that the audit takes at most, above 0 and at most 1.")
	flags.BoolVar(&o.Reports, "audit-reports", false, "Write reports of openreports.io/v1alpha1 where the cluster has the kind.")
}

// validate refuses what cannot be used.
func (o *AuditOptions) validate(refuse func(name string, value any, remedy string)) {
	if _, err := labels.Parse(o.Judged); err != nil {
		refuse("policy-namespace-selector", o.Judged, fmt.Sprintf("give a selector such as team in (a,b): %v", err))
	}
	switch {
	case o.Interval < 0, o.Interval > 0 && o.Interval < time.Minute:
		refuse("audit-interval", o.Interval, "give at least 1m, or 0 for no audit")
	case o.Interval > 0 && o.PolicyNamespace == "":
		refuse("audit-interval", o.Interval, "an audit needs policies: set --policy-namespace too")
	}
	if math.IsNaN(o.CPUShare) || o.CPUShare <= 0 || o.CPUShare > 1 {
		refuse("audit-cpu-share", o.CPUShare, "give a number above 0 and at most 1, such as 0.1")
	}
}

// setUpAudit adds the policies and the audit to the manager; nil when there are no
// policies.
func setUpAudit(ctx context.Context, mgr ctrl.Manager, options AuditOptions, network *surroundings.Watcher) (*audit.Auditor, error) {
	if options.PolicyNamespace == "" {
		return nil, nil
	}
	quarantined, told := policysource.Notices()
	rules, err := engine.New(engine.WithInventory(audit.Inventory{Reader: mgr.GetClient()}), told)
	if err != nil {
		return nil, fmt.Errorf("make the policy engine: %w", err)
	}
	auditor, err := newAuditor(mgr, options, network, rules)
	if err != nil {
		return nil, err
	}
	m, err := policysource.NewMetrics(metrics.Registry, config.ComponentController)
	if err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	// The webhook tells policy authors how a load went; twice would be noise.
	_, err = policysource.SetUp(mgr, policysource.Options{
		Namespace: options.PolicyNamespace, Engine: rules, Events: mgr.GetEventRecorder(controllerName), Beside: true, Metrics: m,
		Changed: auditor.PoliciesChanged, Quarantined: quarantined,
	})
	if err != nil {
		return nil, err
	}
	// Before that, claims get no Sandbox that waits.
	loaded := func(*http.Request) error {
		if !rules.Ready() {
			return errors.New("the policies are not loaded yet")
		}
		return nil
	}
	if err := mgr.AddReadyzCheck("policies", loaded); err != nil {
		return nil, fmt.Errorf("add readiness check: %w", err)
	}
	return auditor, auditor.SetupWithManager(ctx, mgr, metrics.Registry)
}

func newAuditor(mgr ctrl.Manager, options AuditOptions, network *surroundings.Watcher, rules *engine.Engine) (*audit.Auditor, error) {
	discover, err := discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("make the discovery client: %w", err)
	}
	relaxed, err := judge.RelaxedServiceNames(discover)
	if err != nil {
		return nil, err
	}
	judged, err := labels.Parse(options.Judged)
	if err != nil {
		return nil, fmt.Errorf("--policy-namespace-selector: %w", err)
	}
	// Reports are written past the cache: nobody reads them here.
	scheme := k8sruntime.NewScheme()
	if err := reportsv1alpha1.Install(scheme); err != nil {
		return nil, fmt.Errorf("register kinds: %w", err)
	}
	writer, err := client.New(mgr.GetConfig(), client.Options{Scheme: scheme, HTTPClient: mgr.GetHTTPClient(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return nil, fmt.Errorf("make a client for reports: %w", err)
	}
	return audit.New(mgr.GetClient(), writer, rules, clock.RealClock{}, audit.Settings{
		Current: network.Platform, Changed: network.Follow(), Judged: judged, Interval: options.Interval, CPUShare: options.CPUShare, Reports: options.Reports,
		RelaxedServiceNames: relaxed,
	}), nil
}
