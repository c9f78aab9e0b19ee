// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/judge"
	"github.com/agent-sandbox-platform/agent-sandbox/policies/engine"
)

// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch
// +kubebuilder:rbac:groups=node.k8s.io,resources=runtimeclasses,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=nodes,verbs=list;watch
// +kubebuilder:rbac:groups=agents.x-k8s.io,resources=sandboxes,verbs=list;watch
// +kubebuilder:rbac:groups=extensions.agents.x-k8s.io,resources=sandboxtemplates;sandboxwarmpools,verbs=get;list;watch

// nameHash is the index of objects by the contract's hash of their name.
const nameHash = "nameHash"

// Lookup reads what a verdict rests on besides the request.
type Lookup struct {
	// Cached answers from informers.
	Cached client.Reader
	// Live asks the apiserver. It is used for a namespace, template or pool that the
	// informers do not know: it may have been made a moment ago.
	Live client.Reader
}

// Namespace returns the labels and annotations of a namespace.
func (l Lookup) Namespace(ctx context.Context, name string) (engine.NamespaceInfo, error) {
	object := namespaceMetadata()
	key := client.ObjectKey{Name: name}
	err := l.Cached.Get(ctx, key, object)
	if apierrors.IsNotFound(err) {
		err = l.Live.Get(ctx, key, object)
	}
	if err != nil {
		return engine.NamespaceInfo{}, fmt.Errorf("read namespace %q: %w", name, err)
	}
	return engine.NamespaceInfo{Name: name, Labels: object.Labels, Annotations: object.Annotations}, nil
}

// RuntimeClasses are those that exist, and those of them under which a Pod can start.
func (l Lookup) RuntimeClasses(ctx context.Context) (judge.RuntimeClasses, error) {
	var list nodev1.RuntimeClassList
	if err := l.Cached.List(ctx, &list); err != nil {
		return judge.RuntimeClasses{}, fmt.Errorf("list RuntimeClasses: %w", err)
	}
	return judge.RuntimeClassesOf(list.Items, func(labels map[string]string, now bool) (bool, error) {
		options := []client.ListOption{client.MatchingLabels(labels), client.Limit(1)}
		if now {
			options = append(options, client.MatchingFields{takesPods: isTrue})
		}
		var nodes corev1.NodeList
		if err := l.Cached.List(ctx, &nodes, options...); err != nil {
			return false, fmt.Errorf("list nodes: %w", err)
		}
		return len(nodes.Items) > 0, nil
	})
}

// takesPods is the index of the nodes that take Pods now, whose value is isTrue.
const (
	takesPods = "takesPods"
	isTrue    = "true"
)

func whetherItTakesPods(object client.Object) []string {
	if node, isNode := object.(*corev1.Node); isNode && judge.TakesPods(node) {
		return []string{isTrue}
	}
	return nil
}

// Template returns a SandboxTemplate, or nil if there is none that stays: the controllers make
// nothing from one that is being deleted.
func (l Lookup) Template(ctx context.Context, namespace, name string) (map[string]any, error) {
	return l.extension(ctx, engine.KindSandboxTemplate, namespace, name)
}

// Pool returns a SandboxWarmPool, or nil if there is none that stays.
func (l Lookup) Pool(ctx context.Context, namespace, name string) (map[string]any, error) {
	return l.extension(ctx, engine.KindSandboxWarmPool, namespace, name)
}

func (l Lookup) extension(ctx context.Context, kind, namespace, name string) (map[string]any, error) {
	if name == "" {
		return nil, nil
	}
	object, key := extensionObject(kind), client.ObjectKey{Namespace: namespace, Name: name}
	err := l.Cached.Get(ctx, key, object)
	if apierrors.IsNotFound(err) || err == nil && object.GetDeletionTimestamp() != nil {
		object = extensionObject(kind)
		err = l.Live.Get(ctx, key, object)
	}
	if apierrors.IsNotFound(err) || err == nil && object.GetDeletionTimestamp() != nil {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s %s/%s: %w", kind, namespace, name, err)
	}
	return unpacked(object)
}

// Colliding returns the name of another object of the kind whose name has the same
// hash, empty if there is none.
func (l Lookup) Colliding(ctx context.Context, kind, namespace, name string) (string, error) {
	if hashedKind(kind) == nil || name == "" {
		return "", nil
	}
	list := hashedList(kind)
	if err := l.Cached.List(ctx, list, client.InNamespace(namespace), client.MatchingFields{nameHash: keys.NameHash(name)}); err != nil {
		return "", fmt.Errorf("list %s by the hash of %q: %w", kind, name, err)
	}
	other := ""
	err := meta.EachListItem(list, func(object runtime.Object) error {
		accessor, err := meta.Accessor(object)
		if err == nil && accessor.GetName() != name {
			other = accessor.GetName()
		}
		return err
	})
	if err != nil {
		return "", fmt.Errorf("read the list of %s: %w", kind, err)
	}
	return other, nil
}

// hashedKinds are the kinds whose names are hashed into labels that select Pods.
var hashedKinds = []string{engine.KindSandbox, engine.KindSandboxTemplate, engine.KindSandboxWarmPool}

// hashedKind is what the informer of such a kind holds; nil for any other kind. Of
// Sandboxes, of which there may be many, only the names are read.
func hashedKind(kind string) client.Object {
	switch kind {
	case engine.KindSandbox:
		return sandboxMetadata()
	case engine.KindSandboxTemplate, engine.KindSandboxWarmPool:
		return extensionObject(kind)
	default:
		return nil
	}
}

func hashedList(kind string) client.ObjectList {
	if kind == engine.KindSandbox {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(agentsv1beta1.GroupVersion.WithKind(kind + "List"))
		return list
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(extensionsv1beta1.GroupVersion.WithKind(kind + "List"))
	return list
}

// hashOf is the value of the index nameHash.
func hashOf(object client.Object) []string {
	return []string{keys.NameHash(object.GetName())}
}

func sandboxMetadata() *metav1.PartialObjectMetadata {
	return metadataOf(agentsv1beta1.GroupVersion.WithKind(engine.KindSandbox))
}

func namespaceMetadata() *metav1.PartialObjectMetadata {
	return metadataOf(corev1.SchemeGroupVersion.WithKind("Namespace"))
}

func metadataOf(kind schema.GroupVersionKind) *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(kind)
	return object
}

func extensionObject(kind string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(extensionsv1beta1.GroupVersion.WithKind(kind))
	return object
}

// trim drops what no verdict reads, so that the informers stay small.
func trim(object any) (any, error) {
	switch object := object.(type) {
	case *unstructured.Unstructured:
		return packed(object)
	case *metav1.PartialObjectMetadata:
		object.ManagedFields = nil
	}
	return object, nil
}

// trimNode keeps of a node, of which there may be many, its labels and whether it takes
// Pods.
func trimNode(object any) (any, error) {
	node, isNode := object.(*corev1.Node)
	if !isNode {
		return object, nil // a tombstone
	}
	kept := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node.Name, UID: node.UID, ResourceVersion: node.ResourceVersion, Labels: node.Labels}}
	kept.Spec.Unschedulable = node.Spec.Unschedulable
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			kept.Status.Conditions = []corev1.NodeCondition{{Type: condition.Type, Status: condition.Status}}
		}
	}
	return kept, nil
}

// trimToName drops all but the name, for kinds of which only names are read.
func trimToName(object any) (any, error) {
	if full, ok := object.(*metav1.PartialObjectMetadata); ok {
		full.ObjectMeta = metav1.ObjectMeta{
			Name: full.Name, Namespace: full.Namespace, UID: full.UID, ResourceVersion: full.ResourceVersion,
		}
	}
	return object, nil
}
