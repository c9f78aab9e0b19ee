// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// RuntimeClasses are what a cluster has of them, by name.
type RuntimeClasses struct {
	// Existing are those that exist. Usable are those of them under which a Pod can start:
	// one that selects nodes needs a node with these labels.
	Existing, Usable sets.Set[string]
}

// RuntimeClassesOf sorts them. hasNode says whether there is a node with the labels that
// a class selects; its error ends the work.
func RuntimeClassesOf(classes []nodev1.RuntimeClass, hasNode func(labels map[string]string) (bool, error)) (RuntimeClasses, error) {
	found := RuntimeClasses{Existing: sets.New[string](), Usable: sets.New[string]()}
	for i := range classes {
		class := &classes[i]
		found.Existing.Insert(class.Name)
		usable := class.Scheduling == nil || len(class.Scheduling.NodeSelector) == 0
		if !usable {
			var err error
			if usable, err = hasNode(class.Scheduling.NodeSelector); err != nil {
				return found, err
			}
		}
		if usable {
			found.Usable.Insert(class.Name)
		}
	}
	return found, nil
}
