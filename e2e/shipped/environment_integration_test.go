// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package shipped

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/relations"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/apiserver"
)

const (
	poolName = "pool"
	// lease is the name of the Lease for which controllers compete.
	lease = "a3317529.agent-sandbox.x-k8s.io"
)

// server is the apiserver of all tests of this package; TestMain starts it.
var server *apiserver.Server

func TestMain(m *testing.M) { os.Exit(apiserver.Main(m, apiserver.Options{NoFsync: true}, &server)) }

// environment is a namespace whose Pods run on nodes that do not exist.
type environment struct {
	*apiserver.Environment

	shipped *apiserver.Shipped
}

func newEnvironment(t *testing.T) *environment {
	t.Helper()
	if err := server.EnsureNodes(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	shipped, err := server.Build(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	e := &environment{Environment: server.NewEnvironment(t), shipped: shipped}
	e.allowLeases()
	return e
}

// allowLeases lets controllers compete in the namespace, as the chart does in that of
// the release.
func (e *environment) allowLeases() {
	e.Helper()
	e.Create(
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "leases"}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{coordinationv1.GroupName}, Resources: []string{"leases"}, Verbs: []string{"get", "create", "update"}},
		}},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "leases"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "leases"},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: apiserver.Controllers}},
		},
	)
}

// launch starts a controller and waits until its caches are filled. It is stopped with
// the test.
func (e *environment) launch(user string, flags ...string) *replica {
	e.Helper()
	r := &replica{e: e, user: user, flags: flags, Process: e.start(user, flags...)}
	e.Eventually("the caches of "+user+" are filled", func() error {
		r.stayUp()
		if err := server.Failure(); err != nil {
			e.Fatal(err)
		}
		_, err := ask(e.Context(), "http://"+r.Health+"/readyz")
		return err
	})
	return r
}

// start starts a controller. It is stopped with the test.
func (e *environment) start(user string, flags ...string) *apiserver.Process {
	e.Helper()
	process, err := e.shipped.Launch(e.Context(), user, append(slices.Clone(flags), "--extensions", "--leader-election-namespace="+e.Namespace)...)
	if err != nil {
		e.Fatal(err)
	}
	e.Cleanup(func() {
		if err := process.Stop(); err != nil {
			e.Error(err)
		}
	})
	return process
}

// ask reads an answer.
func ask(ctx context.Context, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }() // it was only read
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", response.Status, body)
	}
	return string(body), err
}

// fill makes a pool and waits until it is full.
func (e *environment) fill(replicas int32, controllers ...*replica) {
	e.Helper()
	template := &extensionsv1beta1.SandboxTemplate{ObjectMeta: metav1.ObjectMeta{Name: "template"}}
	template.Spec.PodTemplate.Spec.Containers = []corev1.Container{{Name: "workspace", Image: "python:3.12-slim"}}
	template.Spec.EnvVarsInjectionPolicy = extensionsv1beta1.InjectionAllowed
	pool := &extensionsv1beta1.SandboxWarmPool{ObjectMeta: metav1.ObjectMeta{Name: poolName}}
	pool.Spec.Replicas, pool.Spec.TemplateRef.Name = &replicas, template.Name
	e.Create(template, pool)
	e.full(replicas, controllers...)
}

// full waits until the pool has all its members, and no more.
func (e *environment) full(replicas int32, controllers ...*replica) {
	e.Helper()
	e.Eventually("the pool is full", func() error {
		stayUp(controllers)
		pool := &extensionsv1beta1.SandboxWarmPool{}
		e.Get(poolName, pool)
		members := 0
		for _, sandbox := range e.sandboxes() {
			if relations.Pool(&sandbox) != nil {
				members++
			}
		}
		if pool.Status.ReadyReplicas != replicas || members != int(replicas) {
			return fmt.Errorf("it has %d Sandboxes and says %+v", members, pool.Status)
		}
		return nil
	})
}

func (e *environment) sandboxes() []agentsv1beta1.Sandbox {
	e.Helper()
	var list agentsv1beta1.SandboxList
	if err := e.Client.List(e.Context(), &list, client.InNamespace(e.Namespace)); err != nil {
		e.Fatal(err)
	}
	return list.Items
}

func makeClaim(name string) *extensionsv1beta1.SandboxClaim {
	claim := &extensionsv1beta1.SandboxClaim{ObjectMeta: metav1.ObjectMeta{Name: name}}
	claim.Spec.WarmPoolRef.Name = poolName
	return claim
}

func (e *environment) claims() []extensionsv1beta1.SandboxClaim {
	e.Helper()
	var list extensionsv1beta1.SandboxClaimList
	if err := e.Client.List(e.Context(), &list, client.InNamespace(e.Namespace)); err != nil {
		e.Fatal(err)
	}
	return list.Items
}

// served waits until so many claims are Ready.
func (e *environment) served(want int, controllers ...*replica) {
	e.Helper()
	e.Eventually(fmt.Sprintf("%d claims are Ready", want), func() error {
		stayUp(controllers)
		said := map[string]int{}
		for _, claim := range e.claims() {
			if ready := meta.FindStatusCondition(claim.Status.Conditions, agentsv1beta1.ConditionReady); ready != nil {
				said[string(ready.Status)+"/"+ready.Reason]++
			}
		}
		if said["True/"+agentsv1beta1.ReasonDependenciesReady] < want {
			return errors.Join(server.Failure(), fmt.Errorf("they say %v", said))
		}
		return nil
	})
}

func stayUp(controllers []*replica) {
	for _, controller := range controllers {
		controller.stayUp()
	}
}
