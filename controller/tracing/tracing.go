// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tracing makes spans of the passes over objects. A span's parent is what the
// object's annotation opentelemetry.io/trace-context says, which clients write on their
// claims and which the Sandbox made for a claim inherits.
//
// # Decisions
//
// 2026-11-29: An object without a trace is not given one by a write of its own. A Sandbox
// gets that of the pass that makes it for a claim, in the write that it costs anyway.
package tracing

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
)

// scopeName is the name of the instrumentation.
const scopeName = "github.com/agent-sandbox-platform/agent-sandbox/controller"

// Tracer makes spans. The zero Tracer makes none and costs nothing.
type Tracer struct{ spans trace.Tracer }

// New makes a Tracer whose spans go to a provider.
func New(provider trace.TracerProvider) Tracer { return Tracer{spans: provider.Tracer(scopeName)} }

// Export makes a Tracer whose spans are sent by OTLP over gRPC to where the environment
// variables of OpenTelemetry say. The caller ends it, which sends what is left.
func Export(ctx context.Context, service string) (tracer Tracer, end func(context.Context) error, err error) {
	exporter, err := otlptracegrpc.New(ctx)
	if err != nil {
		return Tracer{}, nil, fmt.Errorf("send traces: %w", err)
	}
	about, err := resource.New(ctx, resource.WithAttributes(attribute.String("service.name", service)), resource.WithFromEnv(), resource.WithTelemetrySDK())
	if err != nil {
		return Tracer{}, nil, errors.Join(fmt.Errorf("describe the source of traces: %w", err), exporter.Shutdown(ctx))
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(about))
	return New(provider), provider.Shutdown, nil
}

// Pass runs a pass over an object as a span that continues the object's trace.
func (t Tracer) Pass(ctx context.Context, name string, object client.Object, run func(context.Context) error) error {
	if t.spans == nil {
		return run(ctx)
	}
	carrier := propagation.MapCarrier{}
	if json.Unmarshal([]byte(object.GetAnnotations()[keys.TraceContext]), &carrier) == nil { // without one it is a trace of its own
		ctx = propagation.TraceContext{}.Extract(ctx, carrier)
	}
	attributes := trace.WithAttributes(
		attribute.String("k8s.namespace.name", object.GetNamespace()), attribute.String("k8s.object.name", object.GetName()),
		attribute.String("k8s.object.uid", string(object.GetUID())),
	)
	return t.span(ctx, name, run, attributes)
}

// Part runs a part of a pass as a span within that of the pass.
func (t Tracer) Part(ctx context.Context, name string, run func(context.Context) error) error {
	if t.spans == nil {
		return run(ctx)
	}
	return t.span(ctx, name, run)
}

func (t Tracer) span(ctx context.Context, name string, run func(context.Context) error, options ...trace.SpanStartOption) error {
	ctx, span := t.spans.Start(ctx, name, options...)
	defer span.End()
	err := run(ctx)
	if err != nil {
		span.RecordError(err)
		span.SetStatus(codes.Error, err.Error())
	}
	return err
}

// Event notes something in the span of the context.
func Event(ctx context.Context, name string, attributes ...attribute.KeyValue) {
	trace.SpanFromContext(ctx).AddEvent(name, trace.WithAttributes(attributes...))
}

// Hand lets an object that is about to be written continue the trace of the context,
// unless it continues another.
func Hand(ctx context.Context, object client.Object) {
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	annotations := object.GetAnnotations()
	if len(carrier) == 0 || annotations[keys.TraceContext] != "" {
		return
	}
	text, err := json.Marshal(carrier)
	if err != nil {
		return // a map of strings always has a text
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[keys.TraceContext] = string(text)
	object.SetAnnotations(annotations)
}
