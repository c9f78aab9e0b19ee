// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package policysource keeps an engine loaded with the policies in force: the library
// that is embedded in the program, and the policy ConfigMaps of the release namespace.
// The webhook and the controller load the same, so that what admission refuses and what
// the audit finds are one.
package policysource

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/clip"
	"github.com/agent-sandbox-platform/agent-sandbox/policies/engine"
)

// Reasons of the Events on policy ConfigMaps.
const (
	ReasonPolicyLoaded     = "PolicyLoaded"
	ReasonPolicyLoadFailed = "PolicyLoadFailed"
	ReasonPolicyMissing    = "PolicyMissing"

	actionLoad = "Load"
)

const (
	// ConfigurationKey holds the configuration of the rules in a policy ConfigMap.
	ConfigurationKey = "policy.yaml"
	// moduleSuffix ends the keys that hold rules.
	moduleSuffix = ".rego"

	// maxModules is how many rules one ConfigMap may hold, and maxAllModules all of them together: each is compiled,
	// and asked about every object.
	maxModules    = 250
	maxAllModules = 1000
)

// Source keeps the engine loaded with the library and the policy ConfigMaps of
// one namespace. A load replaces everything at once; one that fails changes nothing.
// A ConfigMap that disappears stays in force with its last good content, unless the
// annotation RemovalConfirmed was on it, until the program restarts: taking rules away
// by accident must not open the cluster.
type Source struct {
	Options

	mu sync.Mutex
	// confirmed are the names of ConfigMaps whose deletion counts.
	confirmed sets.Set[string]
	// inForce is the last good content by name of the ConfigMap.
	inForce map[string]*corev1.ConfigMap
	// unknown are the ids that the configuration in force names and no rule has, broken the files that did not load.
	unknown, broken sets.Set[string]
	// digest is that of the policies in force when it was last looked at.
	digest string
	// whole says that the last load came to all that was asked for.
	whole bool
	// told are the Events about quarantines and exemptions that were written.
	told sets.Set[string]
}

// Options are what a Source works with.
type Options struct {
	// Reader lists the ConfigMaps.
	Reader client.Reader
	// Namespace is the namespace of the release.
	Namespace string
	// Engine is what judges.
	Engine *engine.Engine
	// Library are the modules that the binary brings.
	Library []engine.Module
	// Events tells policy authors; nil tells nobody.
	Events events.EventRecorder
	// Beside says that another program sees the same ConfigMaps and tells of them: only quarantines, which are this
	// one's own, are told by Events.
	Beside bool
	// Metrics tells Prometheus.
	Metrics *Metrics
	// Clock gives the time; nil for the real one.
	Clock clock.WithTicker
	// Quarantined brings the ids of rules that went into quarantine; nil when nobody tells.
	Quarantined <-chan string
	// Changed is called after each load, and each quarantine, that put other policies in force; nil for nobody.
	// It must not call the Source.
	Changed func()
}

// New makes a source that has loaded nothing yet.
func New(o Options) *Source {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return &Source{
		Options: o, confirmed: sets.New[string](), inForce: map[string]*corev1.ConfigMap{},
		unknown: sets.New[string](), broken: sets.New[string](), told: sets.New[string](),
	}
}

// policySet is what some ConfigMaps say together.
type policySet struct {
	modules       []engine.Module
	configuration engine.Configuration
}

// Reconcile loads everything anew; the request only says that something changed.
func (s *Source) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	var list corev1.ConfigMapList
	if err := s.Reader.List(ctx, &list, client.InNamespace(s.Namespace), client.MatchingLabels{keys.PolicySource: "true"}); err != nil {
		return ctrl.Result{}, fmt.Errorf("list policy ConfigMaps: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	present := map[string]*corev1.ConfigMap{}
	for i := range list.Items {
		if list.Items[i].DeletionTimestamp.IsZero() {
			present[list.Items[i].Name] = &list.Items[i]
		}
	}
	s.load(ctx, present)
	return ctrl.Result{}, nil
}

// load puts the ConfigMaps in force together with those that disappeared.
func (s *Source) load(ctx context.Context, present map[string]*corev1.ConfigMap) {
	wanted, failed := map[string]*corev1.ConfigMap{}, map[string]error{}
	missing := s.missing(present)
	maps.Copy(wanted, missing)
	for name, configMap := range present {
		wanted[name] = configMap
		if _, err := s.parse(configMap); err != nil {
			failed[name] = err
			if wanted[name] = s.inForce[name]; wanted[name] == nil {
				delete(wanted, name)
			}
		}
	}
	report, err := s.put(ctx, wanted, failed)
	if err == nil {
		s.Metrics.loaded(report, len(missing))
	}
	s.tell(ctx, present, failed, report, err)
	if err == nil {
		s.inForce, s.unknown, s.broken = wanted, unknownIn(report), brokenIn(report)
	}
	ignored := slices.ContainsFunc(slices.Collect(maps.Values(present)), func(c *corev1.ConfigMap) bool { return len(unread(c)) > 0 })
	s.whole = err == nil && !ignored && len(failed)+len(report.Broken)+len(report.Unknown)+len(missing) == 0
	s.look()
}

// put loads the engine. Before the first good load, a configuration that cannot be
// read is no reason to go on without it.
func (s *Source) put(ctx context.Context, wanted map[string]*corev1.ConfigMap, failed map[string]error) (engine.LoadReport, error) {
	if !s.Engine.Ready() && len(failed) > 0 {
		return engine.LoadReport{}, errors.New("the first load waits until every policy ConfigMap can be read")
	}
	set, err := s.combine(wanted)
	if err != nil {
		return engine.LoadReport{}, err
	}
	return s.Engine.Load(ctx, set.modules, set.configuration)
}

// Watch says what to do about events of ConfigMaps: load everything anew. A deletion
// brings the last state of the object, which the cache may never have shown.
func (s *Source) Watch() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, object client.Object) []reconcile.Request {
		s.note(object)
		return []reconcile.Request{{}}
	})
}

// note remembers whether the removal of a ConfigMap is confirmed.
func (s *Source) note(configMap client.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if configMap.GetAnnotations()[keys.RemovalConfirmed] == "true" {
		s.confirmed.Insert(configMap.GetName())
		return
	}
	s.confirmed.Delete(configMap.GetName())
}

// missing are the ConfigMaps in force that are gone without a confirmation.
func (s *Source) missing(present map[string]*corev1.ConfigMap) map[string]*corev1.ConfigMap {
	gone := map[string]*corev1.ConfigMap{}
	for name, configMap := range s.inForce {
		if present[name] == nil && !s.confirmed.Has(name) {
			gone[name] = configMap
		}
	}
	return gone
}

// combine puts the library and ConfigMaps together.
func (s *Source) combine(configMaps map[string]*corev1.ConfigMap) (policySet, error) {
	set := policySet{modules: slices.Clone(s.Library)}
	owners := map[string]string{}
	var sources []string
	rules := map[string]engine.RuleConfig{}
	for _, name := range slices.Sorted(maps.Keys(configMaps)) {
		part, err := s.parse(configMaps[name])
		if err != nil {
			return set, err
		}
		set.modules = append(set.modules, part.modules...)
		if rules := len(set.modules) - len(s.Library); rules > maxAllModules {
			return set, fmt.Errorf("%s: its %d rules make %d of all ConfigMaps together, at most %d can be in force: remove some, or merge those that say alike",
				source(configMaps[name]), len(part.modules), rules, maxAllModules)
		}
		set.configuration.Overrides = append(set.configuration.Overrides, part.configuration.Overrides...)
		set.configuration.Exemptions = append(set.configuration.Exemptions, part.configuration.Exemptions...)
		if _, configures := configMaps[name].Data[ConfigurationKey]; configures {
			sources = append(sources, source(configMaps[name])+"/"+ConfigurationKey)
		}
		for _, id := range slices.Sorted(maps.Keys(part.configuration.Rules)) {
			if owners[id] != "" {
				return set, fmt.Errorf("rules.%s is configured by %s of the ConfigMaps %s and %s: keep it in one of them",
					id, ConfigurationKey, owners[id], name)
			}
			owners[id], rules[id] = name, part.configuration.Rules[id]
		}
	}
	configuration, err := engine.ParseConfiguration(strings.Join(sources, ", "), nil)
	if err != nil {
		return set, err
	}
	configuration.Rules, configuration.Overrides, configuration.Exemptions = rules, set.configuration.Overrides, set.configuration.Exemptions
	set.configuration = configuration
	return set, nil
}

// parse reads one ConfigMap by itself.
func (s *Source) parse(configMap *corev1.ConfigMap) (policySet, error) {
	var set policySet
	var err error
	if text, ok := configMap.Data[ConfigurationKey]; ok {
		if set.configuration, err = engine.ParseConfiguration(source(configMap)+"/"+ConfigurationKey, []byte(text)); err != nil {
			return set, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(configMap.Data)) {
		if strings.HasSuffix(name, moduleSuffix) {
			if len(set.modules) == maxModules {
				return set, fmt.Errorf("%s: key %q is one more than the %d rules that a ConfigMap may hold: move some to another ConfigMap",
					source(configMap), name, maxModules)
			}
			set.modules = append(set.modules, engine.Module{Source: source(configMap), Name: name, Content: []byte(configMap.Data[name])})
		}
	}
	return set, nil
}

func source(configMap *corev1.ConfigMap) string {
	return engine.SourceConfigMap + configMap.Namespace + "/" + configMap.Name
}

// tell writes what a load came to on the ConfigMaps concerned.
func (s *Source) tell(ctx context.Context, present map[string]*corev1.ConfigMap, failed map[string]error, report engine.LoadReport, loadErr error) {
	log := logf.FromContext(ctx)
	if loadErr != nil || len(failed) > 0 || len(report.Broken)+len(report.Unknown) > 0 {
		s.Metrics.failures.Inc()
	}
	for _, name := range slices.Sorted(maps.Keys(present)) {
		configMap := present[name]
		switch reasons := s.faultsOf(configMap, report); {
		case failed[name] != nil:
			s.warn(configMap, ReasonPolicyLoadFailed, failed[name].Error())
			log.Error(failed[name], "policy ConfigMap cannot be read, its last good content stays in force", "configMap", name)
		case loadErr != nil:
			s.warn(configMap, ReasonPolicyLoadFailed, loadErr.Error())
		case len(reasons) > 0:
			s.warn(configMap, ReasonPolicyLoadFailed, strings.Join(reasons, "; "))
			log.Info("a part of a policy ConfigMap did not load", "configMap", name, "reasons", reasons)
		case s.inForce[name] == nil || !maps.Equal(s.inForce[name].Data, configMap.Data):
			s.say(configMap, corev1.EventTypeNormal, ReasonPolicyLoaded, fmt.Sprintf("%d rules are in force, digest %s", report.Rules, report.Digest))
		}
	}
	if loadErr != nil {
		log.Error(loadErr, "policies did not load, the last good ones stay in force", "ready", s.Engine.Ready())
		return
	}
	log.Info("policies loaded", "rules", report.Rules, "digest", report.Digest, "broken", len(report.Broken))
	for name, configMap := range s.missing(present) {
		s.warn(configMap, ReasonPolicyMissing, "the ConfigMap is gone; its last content stays in force until webhook and controller restart; to confirm, create it again empty with the annotation "+
			keys.RemovalConfirmed+"=true and delete it")
		log.Info("a policy ConfigMap is gone, its last content stays in force until the program restarts", "configMap", name)
	}
}

// unread lists the keys of a ConfigMap that nobody reads, and what to do.
func unread(configMap *corev1.ConfigMap) []string {
	var reasons []string
	for _, key := range slices.Sorted(maps.Keys(configMap.Data)) {
		if key != ConfigurationKey && !strings.HasSuffix(key, moduleSuffix) {
			reasons = append(reasons, fmt.Sprintf("%s: key %q is neither %s nor does it end in %s: rename or remove it",
				source(configMap), key, ConfigurationKey, moduleSuffix))
		}
	}
	// kubectl puts a file there that is not UTF-8.
	for _, key := range slices.Sorted(maps.Keys(configMap.BinaryData)) {
		reasons = append(reasons, fmt.Sprintf("%s: key %q is binaryData, which is not read: save the file as UTF-8 text, so that it becomes data",
			source(configMap), key))
	}
	return reasons
}

// faultsOf lists what of a ConfigMap did not load: keys, rules, and what it configures of
// rules that do not exist.
func (s *Source) faultsOf(configMap *corev1.ConfigMap, report engine.LoadReport) []string {
	reasons := unread(configMap)
	for _, broken := range report.Broken {
		if broken.Source == source(configMap) {
			reasons = append(reasons, broken.Reason)
		}
	}
	own, err := s.parse(configMap)
	if err != nil {
		return reasons
	}
	for _, unknown := range report.Unknown {
		if own.configuration.Mentions(unknown.Rule) {
			reasons = append(reasons, unknown.Reason)
		}
	}
	return reasons
}

// unknownIn are the ids that a configuration names and no rule has.
func unknownIn(report engine.LoadReport) sets.Set[string] {
	ids := sets.New[string]()
	for _, unknown := range report.Unknown {
		ids.Insert(unknown.Rule)
	}
	return ids
}

func brokenIn(report engine.LoadReport) sets.Set[string] {
	files := sets.New[string]()
	for _, broken := range report.Broken {
		files.Insert(fileOf(broken))
	}
	return files
}

func (s *Source) warn(configMap *corev1.ConfigMap, reason, note string) {
	s.say(configMap, corev1.EventTypeWarning, reason, note)
}

func (s *Source) say(configMap *corev1.ConfigMap, kind, reason, note string) {
	if s.Events != nil && (!s.Beside || reason == ReasonRuleQuarantined) {
		s.Events.Eventf(configMap, nil, kind, reason, actionLoad, "%s", clip.Note(note))
	}
}
