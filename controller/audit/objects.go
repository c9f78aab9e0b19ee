// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"encoding/json"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/config"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/relations"
	"github.com/agent-sandbox-platform/agent-sandbox/policies/engine"
)

// kindOf is the kind of an object of ours, which objects from a cache do not say.
func kindOf(object client.Object) schema.GroupVersionKind {
	switch object.(type) {
	case *agentsv1beta1.Sandbox:
		return agentsv1beta1.GroupVersion.WithKind(engine.KindSandbox)
	case *extensionsv1beta1.SandboxTemplate:
		return extensionsv1beta1.GroupVersion.WithKind(engine.KindSandboxTemplate)
	case *extensionsv1beta1.SandboxWarmPool:
		return extensionsv1beta1.GroupVersion.WithKind(engine.KindSandboxWarmPool)
	case *extensionsv1beta1.SandboxClaim:
		return extensionsv1beta1.GroupVersion.WithKind(engine.KindSandboxClaim)
	default:
		return schema.GroupVersionKind{}
	}
}

// document is an object as decoded JSON, without its status.
func document(object client.Object) (map[string]any, error) {
	converted, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, fmt.Errorf("convert %s %s/%s: %w", kindOf(object).Kind, object.GetNamespace(), object.GetName(), err)
	}
	delete(converted, "status")
	converted["apiVersion"], converted["kind"] = kindOf(object).GroupVersion().String(), kindOf(object).Kind
	return converted, nil
}

// owner is the reference to the object of ours that controls an object; nil when
// none does.
func owner(object metav1.Object) *metav1.OwnerReference {
	by := metav1.GetControllerOf(object)
	if by == nil {
		return nil
	}
	gv, err := schema.ParseGroupVersion(by.APIVersion)
	if err != nil || gv.Group != agentsv1beta1.GroupName && gv.Group != extensionsv1beta1.GroupName {
		return nil
	}
	return by
}

// poolOf is the name of the pool that controls a Sandbox; empty when none does.
func poolOf(object metav1.Object) string {
	if pool := relations.Pool(object); pool != nil {
		return pool.Name
	}
	return ""
}

// seed is that of every fingerprint of this process.
var seed = maphash.MakeSeed()

// fingerprint tells states of something apart that is only compared within this
// process.
type fingerprint struct {
	hash maphash.Hash
}

func newFingerprint() *fingerprint {
	f := &fingerprint{}
	f.hash.SetSeed(seed)
	return f
}

// text adds a text, told apart from those beside it.
func (f *fingerprint) text(text string) {
	f.number(int64(len(text)))
	_, _ = f.hash.WriteString(text) // it never fails
}

func (f *fingerprint) number(n int64) {
	_, _ = f.hash.Write(append(strconv.AppendInt(nil, n, 36), ';')) // it never fails
}

// texts adds a mapping.
func (f *fingerprint) texts(values map[string]string) {
	f.number(int64(len(values)))
	for _, key := range slices.Sorted(maps.Keys(values)) {
		f.text(key)
		f.text(values[key])
	}
}

// object adds everything of an object that rules judge: its spec by the generation, and
// its metadata. Nil is told apart from all objects.
func (f *fingerprint) object(object client.Object) {
	if object == nil {
		f.text("")
		return
	}
	f.text(string(object.GetUID()))
	f.number(object.GetGeneration())
	f.texts(object.GetLabels())
	f.texts(object.GetAnnotations())
	if by := owner(object); by != nil {
		f.text(string(by.UID))
	}
}

// rules adds what changes of an egress profile while the configuration stays: what its
// Services are.
func (f *fingerprint) rules(profile config.EgressProfile) error {
	if len(profile.Rules) == 0 {
		return nil
	}
	raw, err := json.Marshal(profile.Rules)
	if err != nil {
		return fmt.Errorf("encode an egress profile: %w", err)
	}
	f.text(string(raw))
	return nil
}

func (f *fingerprint) sum() uint64 { return f.hash.Sum64() }
