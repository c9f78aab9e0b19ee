// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/agent-sandbox-platform/agent-sandbox/e2e/cluster/internal/build"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/cluster/internal/host"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/cluster/internal/layout"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/cluster/internal/precheck"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/cluster/internal/process"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/cluster/internal/progress"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/cluster/internal/render"
)

const (
	checkInterval = 200 * time.Millisecond
	// readyLimit is how long one component gets to become ready; on an idle
	// machine it takes seconds.
	readyLimit = 3 * time.Minute
)

// step is one stage of a start, with a name that says what is being done.
type step struct {
	name, note string
	run        func(context.Context) error
}

// Up starts the cluster, after building what was never built, and waits until
// it is ready. A healthy cluster is left as it is, and one that is only slow is waited
// for; the remains of one that crashed are removed first.
func (c *Cluster) Up(ctx context.Context) error {
	if err := c.precheckUser(); err != nil {
		return err
	}
	unlock, err := c.lock()
	if err != nil {
		return err
	}
	defer unlock()
	if err := c.precheckAlone(); err != nil {
		return err
	}
	state, why := c.settled(ctx)
	switch state {
	case Running:
		c.say("the cluster is already running")
		return nil
	case Slow:
		return slow(why)
	case Broken:
		c.say("removing the remains of an earlier cluster: %v", why)
		if err := c.tearDown(ctx); err != nil {
			return err
		}
	case Absent:
	}
	facts, err := precheck.Gather(ctx, layout.Ports())
	if err != nil {
		return err
	}
	if err := precheck.Check(facts, layout.Ports()); err != nil {
		return err
	}
	return c.start(ctx, facts.NodeIP)
}

// precheckUser fails early for anyone but root, who alone can read the state.
func (c *Cluster) precheckUser() error {
	if uid := os.Geteuid(); uid != 0 {
		return precheck.Check(precheck.Facts{UID: uid}, nil)
	}
	return nil
}

func (c *Cluster) start(ctx context.Context, nodeIP string) error {
	builder, err := build.NewBuilder(ctx)
	if err != nil {
		return err
	}
	missing, err := builder.Missing(build.Components())
	if err != nil {
		return err
	}
	steps := buildSteps(builder, missing)
	steps = append(steps, c.startSteps(builder, nodeIP)...)
	reporter := progress.New(c.out, c.clock, len(steps))
	for _, s := range steps {
		if err := reporter.Step(s.name, s.note, func() error { return s.run(ctx) }); err != nil {
			return err
		}
	}
	if err := os.WriteFile(c.paths.ReadyMark(), nil, 0o600); err != nil {
		return fmt.Errorf("mark the cluster ready: %w", err)
	}
	reporter.Say("the cluster is ready after " + progress.Seconds(reporter.Elapsed()))
	return nil
}

func buildSteps(b *build.Builder, missing []build.Component) []step {
	var steps []step
	for _, component := range missing {
		steps = append(steps, step{
			name: "building " + component.Name, note: component.Note,
			run: func(ctx context.Context) error { return b.Build(ctx, component) },
		})
	}
	return steps
}

func (c *Cluster) startSteps(b *build.Builder, nodeIP string) []step {
	data := render.Data{Layout: c.paths, NodeIP: nodeIP, Images: imageRefs()}
	started := func(names ...string) func(context.Context) error {
		return func(ctx context.Context) error { return c.startComponents(ctx, nodeIP, names...) }
	}
	return []step{
		{name: "writing certificates and configuration", run: func(context.Context) error {
			return errors.Join(c.own(), c.makeFolders(), b.Link(build.Components(), c.paths.In("bin")), c.writeConfig(data))
		}},
		{name: "preparing the network", run: func(ctx context.Context) error { return c.prepareHost(ctx, nodeIP) }},
		{name: "starting etcd and kube-apiserver", run: started(nameEtcd, nameAPIServer)},
		{name: "starting controllers, scheduler and containerd", run: started(nameManager, nameScheduler, nameContainerd)},
		{name: "loading the cluster's own images", run: c.loadOwnImages},
		{name: "starting kubelet and kube-proxy", run: started(nameKubelet, nameProxy)},
		{name: "starting DNS, storage and NetworkPolicy", run: func(ctx context.Context) error {
			return c.applyAddons(ctx, data)
		}},
		{name: "waiting until node and workloads are ready", run: c.waitReady},
	}
}

func (c *Cluster) makeFolders() error {
	for _, dir := range []string{
		c.paths.Root, c.paths.Run, c.paths.In("logs"), c.paths.In("pki"), c.paths.In("config", "cni"),
		c.paths.Volumes(), c.paths.RunIn("nri"), c.paths.In("images"),
	} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("state folder: %w", err)
		}
	}
	// Pods of any user reach their volumes through these two.
	for _, dir := range []string{c.paths.Root, c.paths.Volumes()} {
		if err := os.Chmod(dir, 0o711); err != nil { //nolint:gosec // See above.
			return fmt.Errorf("state folder: %w", err)
		}
	}
	return nil
}

func (c *Cluster) prepareHost(ctx context.Context, nodeIP string) error {
	if err := host.Save(ctx, c.paths.Saved()); err != nil {
		return err
	}
	if err := errors.Join(host.Apply(), host.MakePodsCgroup()); err != nil {
		return err
	}
	world, err := process.Start(spec(c.paths, nodeIP, nameWorld), c.paths.Records())
	if err != nil {
		return err
	}
	if err := host.MakeWorld(ctx, world.Identity.PID); err != nil {
		return err
	}
	if err := host.MakeNodeDNS(ctx); err != nil {
		return err
	}
	return host.MakePolicyRules(ctx)
}

// startComponents starts components one after the other, each when the one
// before it is ready.
func (c *Cluster) startComponents(ctx context.Context, nodeIP string, names ...string) error {
	for _, name := range names {
		if _, err := process.Start(spec(c.paths, nodeIP, name), c.paths.Records()); err != nil {
			return err
		}
		if err := c.await(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// await waits until a started component is ready, or fails when it or another
// component dies.
func (c *Cluster) await(ctx context.Context, name string) error {
	ready, ok := c.readiness()[name]
	if !ok {
		return nil
	}
	if err := c.until(ctx, ready); err != nil {
		return fmt.Errorf("%s is not ready, see its log %s: %w", name, c.paths.Log(name), err)
	}
	return nil
}

// until waits until something is ready, or fails when a component dies or the patience
// ends.
func (c *Cluster) until(ctx context.Context, ready func(context.Context) error) error {
	ctx, stop := c.watched(ctx)
	defer stop()
	var last error
	for end := c.clock.Now().Add(c.patience); c.clock.Now().Before(end); {
		if last = ready(ctx); last == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-c.clock.After(checkInterval):
		}
	}
	return fmt.Errorf("gave up after %s: %w", c.patience, last)
}

// readiness is how the components that others wait for are asked.
func (c *Cluster) readiness() map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		nameAPIServer: func(ctx context.Context) error {
			_, err := c.kubectl(ctx, nil, "get", "--raw=/readyz")
			return err
		},
		nameContainerd: func(ctx context.Context) error {
			_, err := c.ctr(ctx, "version")
			return err
		},
	}
}

func (c *Cluster) applyAddons(ctx context.Context, data render.Data) error {
	manifests, err := render.Manifests(data)
	if err != nil {
		return err
	}
	ctx, stop := c.watched(ctx)
	defer stop()
	_, err = c.kubectl(ctx, bytes.NewReader(manifests), "apply", "--server-side", "-f", "-")
	return err
}

// waitReady waits for the node and for all that runs in the cluster. CoreDNS
// reaches the apiserver through the queue of the NetworkPolicy agent, so its
// readiness proves that the agent listens.
func (c *Cluster) waitReady(ctx context.Context) error {
	ctx, stop := c.watched(ctx)
	defer stop()
	timeout := "--timeout=" + c.patience.String()
	waits := [][]string{
		{"wait", "--for=create", "node/" + layout.NodeName, timeout},
		{"wait", "--for=condition=Ready", "node/" + layout.NodeName, timeout},
		{"-n", "kube-system", "rollout", "status", "daemonset/kube-network-policies", timeout},
		{"-n", "kube-system", "rollout", "status", "deployment/coredns", timeout},
		{"-n", "kube-system", "rollout", "status", "deployment/storage-provisioner", timeout},
		{"wait", "--for=create", "-n", "default", "serviceaccount/default", timeout},
	}
	for _, args := range waits {
		if _, err := c.kubectl(ctx, nil, args...); err != nil {
			return err
		}
	}
	return nil
}
