// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// hang bounds a hang; no verdict depends on it.
	hang    = 2 * time.Minute
	glimpse = 25 * time.Millisecond
)

// Environment is a namespace for one test: an administrator who reads and writes in
// it, and controllers that see nothing else.
type Environment struct {
	*testing.T

	// Namespace is its name.
	Namespace string
	// User is who the controllers are to the apiserver.
	User string
	// Client is the administrator's.
	Client client.WithWatch
	// Clock is the controllers'.
	Clock *Clock
	// Faults and Lag disturb the controllers under test; nil for none.
	Faults *Faults
	Lag    *Lag
	// Wrap disturbs them in a way of the test's own; nil for none.
	Wrap func(http.RoundTripper) http.RoundTripper
	// Beside are further namespaces that they see.
	Beside []string
	// Told takes their Events in place of the apiserver; nil for none.
	Told *Told

	server *Server
}

// NewEnvironment makes the namespace.
func (s *Server) NewEnvironment(t *testing.T) *Environment {
	t.Helper()
	admin, err := NewClient(s.Config)
	if err != nil {
		t.Fatal(err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	if err := admin.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	return &Environment{
		T: t, Namespace: namespace.Name, User: "controller-of-" + namespace.Name, Client: admin, Clock: &Clock{}, server: s,
	}
}

// Key names an object of the namespace.
func (e *Environment) Key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: e.Namespace, Name: name}
}

// Create stores objects as a builder made them in this namespace.
func (e *Environment) Create(objects ...client.Object) {
	e.Helper()
	for _, object := range objects {
		object.SetNamespace(e.Namespace)
		object.SetUID("")
		object.SetGeneration(0)
		object.SetCreationTimestamp(metav1.Time{})
		if err := e.Client.Create(e.Context(), object); err != nil {
			e.Fatalf("create %T %s: %v", object, object.GetName(), err)
		}
	}
}

// Delete deletes an object.
func (e *Environment) Delete(object client.Object) {
	e.Helper()
	if err := e.Client.Delete(e.Context(), object); err != nil {
		e.Fatalf("delete %T %s: %v", object, object.GetName(), err)
	}
}

// Get reads an object that has to be there.
func (e *Environment) Get(name string, into client.Object) {
	e.Helper()
	if err := e.Client.Get(e.Context(), e.Key(name), into); err != nil {
		e.Fatalf("get %T %s: %v", into, name, err)
	}
}

// Exists reads an object and says whether it is there.
func (e *Environment) Exists(name string, into client.Object) bool {
	e.Helper()
	err := e.Client.Get(e.Context(), e.Key(name), into)
	if err != nil && !apierrors.IsNotFound(err) {
		e.Fatalf("get %T %s: %v", into, name, err)
	}
	return err == nil
}

// Eventually waits until the check is content.
func (e *Environment) Eventually(what string, check func() error) {
	e.Helper()
	var last error
	err := wait.PollUntilContextTimeout(e.Context(), glimpse, hang, true, func(context.Context) (bool, error) {
		last = check()
		return last == nil, nil
	})
	if err != nil {
		e.Fatalf("gave up waiting until %s: %v", what, last)
	}
}

// Gone waits until there is no object of that name.
func (e *Environment) Gone(name string, like client.Object) {
	e.Helper()
	e.Eventually(fmt.Sprintf("%T %s is gone", like, name), func() error {
		if e.Exists(name, like) {
			return errors.New("it is there")
		}
		return nil
	})
}

// Writes are those of the controllers in the namespace until now.
func (e *Environment) Writes() Counts {
	e.Helper()
	if err := e.server.Audit.Settle(e.Context(), e.server.Config); err != nil {
		e.Fatal(err)
	}
	counts, err := e.server.Audit.Writes(Filter{User: e.User, Namespace: e.Namespace})
	if err != nil {
		e.Fatal(err)
	}
	return counts
}

// Overtook is how many writes of a kind, named as in Counts, the controllers had done in
// this namespace when they did the first one in another.
func (e *Environment) Overtook(other, write string) int {
	e.Helper()
	if err := e.server.Audit.Settle(e.Context(), e.server.Config); err != nil {
		e.Fatal(err)
	}
	turns, err := e.server.Audit.Turns(Filter{User: e.User}, write)
	if err != nil {
		e.Fatal(err)
	}
	first := slices.Index(turns, other)
	if first < 0 {
		e.Fatalf("nobody did %q in namespace %s", write, other)
	}
	return first
}

// Witness watches who has which Sandbox until the test ends.
func (e *Environment) Witness() *Witness {
	e.Helper()
	witness, err := NewWitness(context.Background(), e.Client, e.Namespace)
	if err != nil {
		e.Fatal(err)
	}
	e.Cleanup(witness.Stop)
	return witness
}

// Change changes an object of that name as the administrator.
func Change[T client.Object](e *Environment, name string, object T, edit func(T)) T {
	e.Helper()
	e.Get(name, object)
	before, isObject := object.DeepCopyObject().(client.Object)
	if !isObject {
		e.Fatalf("%T is no object", object)
	}
	edit(object)
	if err := e.Client.Patch(e.Context(), object, client.MergeFrom(before)); err != nil {
		e.Fatalf("change %T %s: %v", object, object.GetName(), err)
	}
	return object
}

// MakeNode makes a node that is ready.
func (e *Environment) MakeNode(name string) {
	e.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := e.Client.Create(e.Context(), node); err != nil {
		e.Fatal(err)
	}
	node.Spec.Taints = nil // admission marks a new node as not ready
	if err := e.Client.Update(e.Context(), node); err != nil {
		e.Fatal(err)
	}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	if err := e.Client.Status().Update(e.Context(), node); err != nil {
		e.Fatal(err)
	}
}

// ServeKubelet plays scheduler and kubelet for the Pods of the namespace until the test
// ends, on a node that need not exist.
func (e *Environment) ServeKubelet(node string) {
	e.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- Kubelet{Client: e.Client, Node: node}.Serve(ctx, e.Namespace) }()
	e.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			e.Errorf("the kubelet ended with: %v", err)
		}
	})
}
