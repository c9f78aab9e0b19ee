// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package render fills in the configuration files of the components and the
// manifests of what runs in the cluster. It is pure.
package render

import (
	"bytes"
	"embed"
	"fmt"
	"path"
	"strings"
	"text/template"

	"github.com/agent-sandbox-platform/agent-sandbox/e2e/cluster/internal/layout"
)

//go:embed templates manifests
var files embed.FS

// Data is what the templates may use, besides all paths of the Layout.
type Data struct {
	layout.Layout
	// NodeIP is the address of the machine.
	NodeIP string
	// Images are the references of the cluster's own images, by name.
	Images map[string]string
}

// NodeBits is the length of the range that holds nothing but the node's address.
func (d Data) NodeBits() int {
	if strings.Contains(d.NodeIP, ":") {
		return 128
	}
	return 32
}

// PauseImage is the image of the container that holds a Pod's namespaces.
func (d Data) PauseImage() string { return d.Images["pause"] }

// names are the names and addresses of the cluster, as functions of the templates.
func names() template.FuncMap {
	all := template.FuncMap{}
	for name, value := range map[string]string{
		"nodeName":       layout.NodeName,
		"domain":         layout.Domain,
		"podCIDR":        layout.PodCIDR,
		"nodePodCIDR":    layout.NodePodCIDR,
		"podCIDR6":       layout.PodCIDR6,
		"nodePodCIDR6":   layout.NodePodCIDR6,
		"serviceCIDR":    layout.ServiceCIDR,
		"dnsServiceIP":   layout.DNSServiceIP,
		"nodeDNSIP":      layout.NodeDNSIP,
		"bridge":         layout.Bridge,
		"publicIP":       layout.WorldPublicIP,
		"policyQueue":    layout.PolicyQueue,
		"podsCgroup":     layout.PodsCgroup,
		"storageClass":   layout.StorageClass,
		"provisionerKey": layout.ProvisionerKey,
	} {
		all[name] = func() string { return value }
	}
	return all
}

// Config renders the configuration file called name.
func Config(name string, d Data) ([]byte, error) { return execute(path.Join("templates", name), d) }

// Manifests renders everything to be applied to the cluster, as one YAML stream.
func Manifests(d Data) ([]byte, error) {
	entries, err := files.ReadDir("manifests")
	if err != nil {
		return nil, fmt.Errorf("manifests: %w", err)
	}
	var all bytes.Buffer
	for _, entry := range entries {
		one, err := execute(path.Join("manifests", entry.Name()), d)
		if err != nil {
			return nil, err
		}
		all.WriteString("---\n")
		all.Write(one)
	}
	return all.Bytes(), nil
}

func execute(name string, d Data) ([]byte, error) {
	raw, err := files.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("template %s: %w", name, err)
	}
	parsed, err := template.New(name).Funcs(names()).Option("missingkey=error").Parse(string(raw))
	if err != nil {
		return nil, fmt.Errorf("template %s: %w", name, err)
	}
	var out bytes.Buffer
	if err := parsed.Execute(&out, d); err != nil {
		return nil, fmt.Errorf("template %s: %w", name, err)
	}
	return out.Bytes(), nil
}
