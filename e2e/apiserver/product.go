// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

// Product is a controller that serves the kinds of the platform: how its program is built,
// and what has to be installed for it.
type Product struct {
	// Module is the folder of a Go module, and Command a package that it knows.
	Module, Command string
	// Definitions and Roles are patterns of files: those of the kinds, and those with the
	// ClusterRoles of the controller.
	Definitions, Roles string
	// Config is the content of what the flag --config names; empty when there is no such
	// flag.
	Config string
	// Environment are variables of its processes besides those of the test, as NAME=value.
	Environment []string
}

// Own is the controller of this repository, configured by Platform.
func Own() (*Product, error) {
	root, err := Root()
	if err != nil {
		return nil, err
	}
	platform, err := yaml.Marshal(Platform())
	if err != nil {
		return nil, fmt.Errorf("render the configuration: %w", err)
	}
	return &Product{
		Module: root, Command: "./cmd/agent-sandbox-controller",
		Definitions: filepath.Join(root, "controller", "api", "crds", "*.yaml"),
		Roles:       filepath.Join(root, "charts", "agent-sandbox", "files", "controller-role.yaml"),
		Config:      string(platform),
	}, nil
}
