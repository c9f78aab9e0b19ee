// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// packedField holds the JSON of an object in an informer's store. No kind of the API has a field
// of that name at its top, and the apiserver prunes what tenants write there.
const packedField = "packed"

// packed is a template or pool as the informers hold it: what identifies it, and the JSON of all
// that a verdict reads. Decoded, an object of many small parts takes twenty times as much, and
// whoever may write templates would fill the memory of every replica.
func packed(object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if _, done := object.Object[packedField]; done {
		return object, nil
	}
	object.SetManagedFields(nil)
	delete(object.Object, "status")
	raw, err := object.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("encode %s %s/%s: %w", object.GetKind(), object.GetNamespace(), object.GetName(), err)
	}
	kept := &unstructured.Unstructured{Object: map[string]any{packedField: string(raw)}}
	kept.SetGroupVersionKind(object.GroupVersionKind())
	kept.SetNamespace(object.GetNamespace())
	kept.SetName(object.GetName())
	kept.SetUID(object.GetUID())
	kept.SetResourceVersion(object.GetResourceVersion())
	return kept, nil
}

// unpacked is the whole of an object that is packed, or that was read from the apiserver.
func unpacked(object *unstructured.Unstructured) (map[string]any, error) {
	raw, held := object.Object[packedField].(string)
	if !held {
		return object.Object, nil
	}
	var whole unstructured.Unstructured
	if err := whole.UnmarshalJSON([]byte(raw)); err != nil {
		return nil, fmt.Errorf("decode %s %s/%s: %w", object.GetKind(), object.GetNamespace(), object.GetName(), err)
	}
	return whole.Object, nil
}

// sizeOf is how many bytes of JSON an object that is packed has.
func sizeOf(object *unstructured.Unstructured) int {
	raw, _ := object.Object[packedField].(string)
	return len(raw)
}
