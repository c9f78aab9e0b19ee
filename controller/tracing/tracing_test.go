// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package tracing_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/tracing"
)

const (
	traceID = "0af7651916cd43dd8448eb211c80319c"
	client  = `{"traceparent":"00-` + traceID + `-b7ad6b7169203331-01"}`
)

func object(annotation string) *corev1.Pod {
	made := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "box"}}
	if annotation != "" {
		made.Annotations = map[string]string{keys.TraceContext: annotation}
	}
	return made
}

func record() (tracing.Tracer, *tracetest.SpanRecorder) {
	recorder := tracetest.NewSpanRecorder()
	return tracing.New(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder))), recorder
}

func TestAPassContinuesTheTraceOfItsObject(t *testing.T) {
	cases := map[string]struct {
		annotation string
		continues  bool
	}{
		"a trace of a client":     {client, true},
		"none":                    {"", false},
		"a text that is no trace": {"{", false},
		"a trace that is none":    {`{"traceparent":"00-0-0-01"}`, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tracer, recorder := record()
			fault := errors.New("refused")
			err := tracer.Pass(t.Context(), "pass", object(tc.annotation), func(ctx context.Context) error {
				return tracer.Part(ctx, "part", func(ctx context.Context) error { tracing.Event(ctx, "seen"); return fault })
			})
			if !errors.Is(err, fault) {
				t.Errorf("Pass() = %v, want the fault", err)
			}
			spans := recorder.Ended()
			if len(spans) != 2 || spans[0].Name() != "part" || spans[1].Name() != "pass" {
				t.Fatalf("spans = %v", spans)
			}
			part, pass := spans[0], spans[1]
			if got := pass.SpanContext().TraceID().String() == traceID; got != tc.continues {
				t.Errorf("the pass belongs to trace %s", pass.SpanContext().TraceID())
			}
			if part.Parent().SpanID() != pass.SpanContext().SpanID() || part.Events()[0].Name != "seen" || pass.Status().Code != codes.Error {
				t.Errorf("part = %+v, pass = %+v", part, pass)
			}
		})
	}
}

func TestTheZeroTracerOnlyRunsWhatItIsGiven(t *testing.T) {
	ran := 0
	var off tracing.Tracer
	err := off.Pass(t.Context(), "pass", object(client), func(ctx context.Context) error {
		return off.Part(ctx, "part", func(ctx context.Context) error {
			ran++
			made := object("")
			tracing.Hand(ctx, made)
			tracing.Event(ctx, "seen")
			if diff := cmp.Diff(object(""), made); diff != "" {
				t.Errorf("the object was changed (-want +got):\n%s", diff)
			}
			return nil
		})
	})
	if ran != 1 || err != nil {
		t.Errorf("ran %d times and returned %v", ran, err)
	}
}

func TestHandGivesTheTraceToWhatHasNone(t *testing.T) {
	tracer, recorder := record()
	bare, own := object(""), object(client)
	err := tracer.Pass(t.Context(), "pass", object(""), func(ctx context.Context) error {
		tracing.Hand(ctx, bare)
		tracing.Hand(ctx, own)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	span := recorder.Ended()[0].SpanContext()
	want := `{"traceparent":"00-` + span.TraceID().String() + "-" + span.SpanID().String() + `-01"}`
	if bare.Annotations[keys.TraceContext] != want || own.Annotations[keys.TraceContext] != client {
		t.Errorf("annotations = %v and %v, want %s and the object's own", bare.Annotations, own.Annotations, want)
	}
}
