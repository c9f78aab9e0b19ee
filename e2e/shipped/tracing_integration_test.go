// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package shipped

import (
	"context"
	"encoding/hex"
	"fmt"
	"net"
	"sync"
	"testing"

	collectorv1 "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
)

// traceID is the trace of a client.
const traceID = "0af7651916cd43dd8448eb211c80319c"

// collector takes traces and remembers the names of the spans of each.
type collector struct {
	collectorv1.UnimplementedTraceServiceServer

	mu    sync.Mutex
	spans map[string]map[string]bool
}

// Export implements the collector's service.
func (c *collector) Export(_ context.Context, request *collectorv1.ExportTraceServiceRequest) (*collectorv1.ExportTraceServiceResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, resource := range request.GetResourceSpans() {
		for _, scope := range resource.GetScopeSpans() {
			for _, span := range scope.GetSpans() {
				id := hex.EncodeToString(span.GetTraceId())
				if c.spans[id] == nil {
					c.spans[id] = map[string]bool{}
				}
				c.spans[id][span.GetName()] = true
			}
		}
	}
	return &collectorv1.ExportTraceServiceResponse{}, nil
}

// has says which of the spans a trace lacks.
func (c *collector) has(trace string, names ...string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range names {
		if !c.spans[trace][name] {
			return fmt.Errorf("it has %v, want %q as well", c.spans[trace], name)
		}
	}
	return nil
}

// listen serves a collector until the test ends.
func listen(t *testing.T) (c *collector, address string) {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c = &collector{spans: map[string]map[string]bool{}}
	service := grpc.NewServer()
	collectorv1.RegisterTraceServiceServer(service, c)
	served := make(chan error, 1)
	go func() { served <- service.Serve(listener) }()
	t.Cleanup(func() {
		service.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return c, listener.Addr().String()
}

// A client's trace goes on from its claim to the Sandbox, warm or cold.
func TestATraceGoesFromTheClientToTheSandbox(t *testing.T) {
	c, address := listen(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://"+address)
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "100") // milliseconds
	e := newEnvironment(t)
	e.launch("traced", "--enable-tracing", "--claim-cold-start-after=0s")
	e.fill(1)
	for i, name := range []string{"warm", "cold"} {
		trace := fmt.Sprintf("%s%d", traceID[:len(traceID)-1], i)
		claim := makeClaim(name)
		claim.Annotations = map[string]string{keys.TraceContext: fmt.Sprintf(`{"traceparent":"00-%s-b7ad6b7169203331-01"}`, trace)}
		if name == "cold" { // its variables leave the pool alone
			claim.Spec.Env = []extensionsv1beta1.EnvVar{{Name: "A", Value: "b"}}
		}
		e.Create(claim)
		e.served(i + 1)
		e.Eventually("the trace of the "+name+" claim is complete", func() error {
			return c.has(trace, "ReconcileSandboxClaim", "ReconcileSandbox", "reconcilePod", "reconcilePVCs")
		})
	}
	claim := makeClaim("untraced")
	e.Create(claim)
	e.served(3)
	e.Get("untraced", claim)
	sandbox := &agentsv1beta1.Sandbox{}
	e.Get(claim.Status.SandboxStatus.Name, sandbox)
	if sandbox.Annotations[keys.TraceContext] == "" || claim.Annotations[keys.TraceContext] != "" {
		t.Errorf("annotations: of the Sandbox %v, of its claim %v; want a trace from the pass, and no write to the claim", sandbox.Annotations, claim.Annotations)
	}
}
