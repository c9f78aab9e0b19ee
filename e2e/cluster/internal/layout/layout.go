// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package layout says where everything of one cluster lies and how it is
// called. It is pure: it touches no file.
package layout

import (
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"
)

// DefaultRoot is the state folder of the cluster when none is named.
const DefaultRoot = "/var/lib/agent-sandbox-cluster"

// Names and addresses of the cluster, the same on every machine.
const (
	NodeName       = "agent-sandbox-node"
	Domain         = "cluster.local"
	PodCIDR        = "10.244.0.0/16"
	NodePodCIDR    = "10.244.0.0/24"
	PodCIDR6       = "fd00:10:244::/56"
	NodePodCIDR6   = "fd00:10:244::/64"
	ServiceCIDR    = "10.96.0.0/16"
	APIServiceIP   = "10.96.0.1"
	DNSServiceIP   = "10.96.0.10"
	NodeDNSIP      = "169.254.20.10"
	Bridge         = "asbr0"
	WorldHostLink  = "asworld0"
	WorldPeerLink  = "asworld1"
	WorldHostIP    = "198.51.100.1"
	WorldPeerIP    = "198.51.100.2"
	WorldPublicIP  = "203.0.113.10"
	WorldMetaIP    = "169.254.169.254"
	WorldHostIP6   = "fd00:51:100::1"
	WorldPeerIP6   = "fd00:51:100::2"
	WorldPublicIP6 = "2001:db8:113::10"
	WorldMetaIP6   = "fd00:ec2::254"
	WorldTable     = "10244"
	PolicyChain    = "AGENT-SANDBOX-POLICY"
	PolicyQueue    = "100"
	PodsCgroup     = "agent-sandbox-cluster"
	StorageClass   = "standard"
	ProvisionerKey = "agent-sandbox-platform/hostpath"
)

// Ports of the components on the node, by the component that listens there.
func Ports() map[int]string {
	return map[int]string{
		2379:  "etcd",
		2380:  "etcd (peer)",
		6443:  "kube-apiserver",
		9080:  "kube-network-policies (metrics)",
		10248: "kubelet (health)",
		10249: "kube-proxy (metrics)",
		10250: "kubelet",
		10256: "kube-proxy (health)",
		10257: "kube-controller-manager",
		10259: "kube-scheduler",
	}
}

// Layout is the set of paths of one cluster.
type Layout struct {
	// Root is the state folder; Run is the short folder of its sockets, since
	// the path of a unix socket has at most 107 bytes.
	Root, Run string
}

// New lays out the cluster whose state folder is root, an absolute path.
func New(root string) Layout {
	sum := sha256.Sum256([]byte(filepath.Clean(root)))
	return Layout{Root: filepath.Clean(root), Run: "/run/agent-sandbox-" + hex.EncodeToString(sum[:4])}
}

// In is a path in the state folder.
func (l Layout) In(elem ...string) string {
	return filepath.Join(append([]string{l.Root}, elem...)...)
}

// RunIn is a path in the folder of sockets.
func (l Layout) RunIn(elem ...string) string {
	return filepath.Join(append([]string{l.Run}, elem...)...)
}

// Bin is the path of a program of the cluster.
func (l Layout) Bin(program string) string { return l.In("bin", program) }

// Log is the log file of a component.
func (l Layout) Log(component string) string { return l.In("logs", component+".log") }

// PKI is the path of a certificate or key file.
func (l Layout) PKI(file string) string { return l.In("pki", file) }

// Config is the path of a configuration file of a component.
func (l Layout) Config(file string) string { return l.In("config", file) }

// Kubeconfig is the administrator's kubeconfig.
func (l Layout) Kubeconfig() string { return l.In("kubeconfig") }

// Values is the file with what the platform's chart must know about the cluster.
func (l Layout) Values() string { return l.In("values.yaml") }

// KubeconfigOf is the kubeconfig of a component.
func (l Layout) KubeconfigOf(component string) string { return l.In("config", component+".kubeconfig") }

// AuditLog is the apiserver's audit log: one JSON event a line, at the level
// Metadata, one event a request.
func (l Layout) AuditLog() string { return l.In("logs", "audit.log") }

// Containerd is the socket of containerd.
func (l Layout) Containerd() string { return l.RunIn("containerd.sock") }

// Volumes is the folder of the dynamically provisioned volumes.
func (l Layout) Volumes() string { return l.In("volumes") }

// Records is the folder of the records of started processes.
func (l Layout) Records() string { return l.In("processes") }

// Saved is the file with the kernel settings as they were before the cluster.
func (l Layout) Saved() string { return l.In("saved-settings.json") }

// ReadyMark exists once `up` has finished.
func (l Layout) ReadyMark() string { return l.In("ready") }
