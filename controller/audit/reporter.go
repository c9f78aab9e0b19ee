// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"sync/atomic"
	"time"

	reportsv1alpha1 "github.com/openreports/reports-api/apis/openreports.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/isolation"
)

const (
	// fieldOwner is the name under which the apiserver records writes of reports.
	fieldOwner = client.FieldOwner("agent-sandbox-audit")
	// reportInterval is how long a report stays as it is at least: where Sandboxes come
	// and go, it would be written all the time.
	reportInterval = 30 * time.Second
	// digestAnnotation names the policies by which a report was made.
	digestAnnotation = keys.Prefix + "policy-digest"
)

// reporter writes reports. Only one pass at a time uses it, but for installed.
type reporter struct {
	// client writes to the apiserver, and reads from it when it begins.
	client  client.Client
	metrics *metrics
	// installed says whether the cluster has the kind.
	installed atomic.Bool
	// interval is reportInterval, but for tests.
	interval time.Duration
	// begun is true once it is known what an earlier process wrote.
	begun bool
	// written is what stands in the cluster, by namespace and name.
	written map[string]map[string]*written
}

// written is a report that was written.
type written struct {
	content uint64
	at      time.Time
	// since is when each finding was first in it.
	since map[finding]time.Time
}

func newReporter(c client.Client, m *metrics) *reporter {
	return &reporter{client: c, metrics: m, written: map[string]map[string]*written{}, interval: reportInterval}
}

// detect notes that the cluster has the kind, or has it no more.
func (p *reporter) detect(present bool) { p.installed.Store(present) }

// begin finds the reports that an earlier process wrote. It is the only read.
func (p *reporter) begin(ctx context.Context) error {
	if p.begun {
		return nil
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kindReport.GroupVersion().WithKind(kindReport.Kind + "List"))
	if err := p.client.List(ctx, list, client.MatchingLabels{keys.ManagedBy: isolation.Manager}); err != nil {
		return fmt.Errorf("list reports: %w", err)
	}
	for i := range list.Items {
		p.of(list.Items[i].Namespace)[list.Items[i].Name] = &written{}
	}
	p.begun = true
	return nil
}

func (p *reporter) of(namespace string) map[string]*written {
	if p.written[namespace] == nil {
		p.written[namespace] = map[string]*written{}
	}
	return p.written[namespace]
}

// forget drops what is known of a namespace that is gone; its reports went with it.
func (p *reporter) forget(namespace string) { delete(p.written, namespace) }

// publish brings the reports of a namespace to their content. It says when to come
// again for one that was written a moment ago; zero for never. With again, reports are
// written whose content is what was written last: somebody may have changed them.
func (p *reporter) publish(ctx context.Context, namespace string, e edition, again bool) (due time.Time, err error) {
	if !p.installed.Load() {
		// What was written went with the kind.
		p.begun, p.written = false, map[string]map[string]*written{}
		return time.Time{}, nil
	}
	if err := p.begin(ctx); err != nil {
		return time.Time{}, p.absent(err)
	}
	wanted := sets.New[string]()
	var errs []error
	for i := range e.reports {
		wanted.Insert(e.reports[i].name)
		next, err := p.write(ctx, namespace, &e.reports[i], e, again)
		if errs = append(errs, err); due.IsZero() || !next.IsZero() && next.Before(due) {
			due = next
		}
	}
	for name := range p.of(namespace) {
		if !wanted.Has(name) {
			errs = append(errs, p.remove(ctx, namespace, name))
		}
	}
	return due, p.absent(errors.Join(errs...))
}

// absent is nil for an error that says that the kind is gone, or the namespace about to.
func (p *reporter) absent(err error) error {
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return nil
	}
	return err
}

// edition is what is to be published of a namespace.
type edition struct {
	reports    []report
	digest     string
	categories map[string]string
	now        time.Time
}

// write writes one report if its content is another one. It says when it is due if that
// is too early.
func (p *reporter) write(ctx context.Context, namespace string, r *report, e edition, again bool) (due time.Time, err error) {
	results := r.results(namespace, e.categories)
	content, err := fingerprintOf(e.digest, r.summary, results)
	if err != nil {
		return time.Time{}, err
	}
	before := p.of(namespace)[r.name]
	if before == nil {
		before = &written{}
	}
	if content == before.content && !again {
		return time.Time{}, nil
	}
	if early := before.at.Add(p.interval); e.now.Before(early) {
		return early, nil
	}
	after := &written{content: content, at: e.now, since: map[finding]time.Time{}}
	for i, g := range r.groups[:min(len(r.groups), len(results))] {
		since, known := before.since[g.finding]
		if !known {
			since = e.now
		}
		after.since[g.finding] = since
		results[i].Timestamp = metav1.Timestamp{Seconds: since.Unix()}
	}
	object, err := object(namespace, r, e.digest, results)
	if err != nil {
		return time.Time{}, err
	}
	err = p.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), fieldOwner, client.ForceOwnership)
	p.metrics.writes.WithLabelValues("apply", succeeded(err)).Inc()
	if err != nil {
		return time.Time{}, fmt.Errorf("write report %s/%s: %w", namespace, r.name, err)
	}
	p.of(namespace)[r.name] = after
	return time.Time{}, nil
}

// remove deletes a report that has nothing to say any more.
func (p *reporter) remove(ctx context.Context, namespace, name string) error {
	gone := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	gone.SetGroupVersionKind(kindReport)
	err := client.IgnoreNotFound(p.client.Delete(ctx, gone))
	p.metrics.writes.WithLabelValues("delete", succeeded(err)).Inc()
	if err != nil {
		return fmt.Errorf("delete report %s/%s: %w", namespace, name, err)
	}
	delete(p.written[namespace], name)
	return nil
}

func succeeded(err error) string {
	if err != nil {
		return "error"
	}
	return "success"
}

// object is a report as it is applied.
func object(namespace string, r *report, digest string, results []reportsv1alpha1.ReportResult) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&reportsv1alpha1.Report{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: r.name, Labels: map[string]string{keys.ManagedBy: isolation.Manager},
			Annotations: map[string]string{digestAnnotation: digest},
		},
		Source:  reportSource,
		Scope:   &corev1.ObjectReference{APIVersion: "v1", Kind: "Namespace", Name: namespace},
		Summary: r.summary, Results: results,
	})
	if err != nil {
		return nil, fmt.Errorf("convert report %s/%s: %w", namespace, r.name, err)
	}
	made := &unstructured.Unstructured{Object: content}
	made.SetGroupVersionKind(kindReport)
	unstructured.RemoveNestedField(made.Object, "metadata", "creationTimestamp")
	return made, nil
}

// fingerprintOf tells contents apart, times left out.
func fingerprintOf(digest string, summary reportsv1alpha1.ReportSummary, results []reportsv1alpha1.ReportResult) (uint64, error) {
	raw, err := json.Marshal(struct {
		Digest  string
		Summary reportsv1alpha1.ReportSummary
		Results []reportsv1alpha1.ReportResult
	}{digest, summary, results})
	if err != nil {
		return 0, fmt.Errorf("encode results: %w", err)
	}
	return maphash.Bytes(seed, raw), nil
}
