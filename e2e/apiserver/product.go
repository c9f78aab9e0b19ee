// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"path/filepath"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/config"
)

// Product is a controller that serves the kinds of the platform: how its program is built,
// and what has to be installed for it.
type Product struct {
	// Module is the folder of a Go module, and Command a package that it knows.
	Module, Command string
	// Definitions and Roles are patterns of files: those of the kinds, and those with the
	// ClusterRoles of the controller.
	Definitions, Roles string
	// Config is what the flag --config names; nil when there is no such flag.
	Config *config.Platform
}

// platform is the controller of this repository.
func platform() (*Product, error) {
	root, err := Root()
	if err != nil {
		return nil, err
	}
	return &Product{
		Module: root, Command: "./cmd/agent-sandbox-controller",
		Definitions: filepath.Join(root, "controller", "api", "crds", "*.yaml"),
		Roles:       filepath.Join(root, "charts", "agent-sandbox", "files", "controller-role.yaml"),
		Config:      Platform(),
	}, nil
}
