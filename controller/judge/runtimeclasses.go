// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// RuntimeClasses are what a cluster has of them, by name.
type RuntimeClasses struct {
	// Existing are those that exist. Usable are those of them under which a Pod can start:
	// one that selects nodes needs a node with these labels. Free are those of them under
	// which it can start now: the node is ready and not cordoned.
	Existing, Usable, Free sets.Set[string]
}

// RuntimeClassesOf sorts them. hasNode says whether there is a node with these labels, of
// those that take Pods now or of all; its error ends the work.
func RuntimeClassesOf(classes []nodev1.RuntimeClass, hasNode func(labels map[string]string, now bool) (bool, error)) (RuntimeClasses, error) {
	found := RuntimeClasses{Existing: sets.New[string](), Usable: sets.New[string](), Free: sets.New[string]()}
	for i := range classes {
		class := &classes[i]
		found.Existing.Insert(class.Name)
		usable, free := true, true
		if class.Scheduling != nil && len(class.Scheduling.NodeSelector) > 0 {
			var err error
			if usable, err = hasNode(class.Scheduling.NodeSelector, false); err != nil {
				return found, err
			}
			if free = usable; usable {
				free, err = hasNode(class.Scheduling.NodeSelector, true)
			}
			if err != nil {
				return found, err
			}
		}
		if usable {
			found.Usable.Insert(class.Name)
		}
		if free {
			found.Free.Insert(class.Name)
		}
	}
	return found, nil
}

// withNodesToCome adds the classes whose nodes come when a Pod waits for one.
func (c RuntimeClasses) withNodesToCome(names []string) {
	for _, name := range names {
		if c.Existing.Has(name) {
			c.Usable.Insert(name)
			c.Free.Insert(name)
		}
	}
}

// TakesPods says whether a node is ready and not cordoned.
func TakesPods(node *corev1.Node) bool {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue && !node.Spec.Unschedulable
		}
	}
	return false
}
