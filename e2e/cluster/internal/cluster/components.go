// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"os"

	"github.com/agent-sandbox-platform/agent-sandbox/e2e/cluster/internal/layout"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/cluster/internal/process"
)

// Names of the components that run as processes on the node.
const (
	nameEtcd       = "etcd"
	nameAPIServer  = "kube-apiserver"
	nameManager    = "kube-controller-manager"
	nameScheduler  = "kube-scheduler"
	nameContainerd = "containerd"
	nameKubelet    = "kubelet"
	nameProxy      = "kube-proxy"
	nameWorld      = "world"
)

// startOrder is the order in which components start; they stop in reverse.
func startOrder() []string {
	return []string{
		nameWorld, nameEtcd, nameAPIServer, nameManager, nameScheduler, nameContainerd, nameKubelet, nameProxy,
	}
}

const (
	apiPort  = "6443"
	apiURL   = "https://127.0.0.1:" + apiPort
	etcdURL  = "https://127.0.0.1:2379"
	etcdPeer = "http://127.0.0.1:2380"
)

// spec is how a component is started.
func spec(l layout.Layout, nodeIP, name string) process.Spec {
	args := map[string]func() []string{
		nameEtcd:       func() []string { return etcdArgs(l) },
		nameAPIServer:  func() []string { return apiserverArgs(l, nodeIP) },
		nameManager:    func() []string { return managerArgs(l) },
		nameScheduler:  func() []string { return schedulerArgs(l) },
		nameContainerd: func() []string { return []string{"--config=" + l.Config("containerd.toml")} },
		nameKubelet:    func() []string { return kubeletArgs(l, nodeIP) },
		nameProxy:      func() []string { return []string{"--config=" + l.Config("kube-proxy.yaml")} },
		nameWorld:      func() []string { return nil },
	}
	return process.Spec{
		Name: name, Path: l.Bin(name), Args: args[name](), Log: l.Log(name), OwnNetwork: name == nameWorld,
		// containerd finds its shims, and the CNI plugins find nft, on the PATH.
		Env: []string{"PATH=" + l.In("bin") + ":" + os.Getenv("PATH")},
	}
}

func etcdArgs(l layout.Layout) []string {
	return []string{
		"--name=default", "--data-dir=" + l.In("etcd"),
		"--listen-client-urls=" + etcdURL, "--advertise-client-urls=" + etcdURL,
		"--listen-peer-urls=" + etcdPeer, "--initial-advertise-peer-urls=" + etcdPeer,
		"--initial-cluster=default=" + etcdPeer,
		"--cert-file=" + l.PKI("etcd-server.crt"), "--key-file=" + l.PKI("etcd-server.key"),
		"--client-cert-auth", "--trusted-ca-file=" + l.PKI("etcd-ca.crt"),
		"--log-level=warn",
	}
}

func apiserverArgs(l layout.Layout, nodeIP string) []string {
	return []string{
		"--advertise-address=" + nodeIP, "--secure-port=" + apiPort,
		"--tls-cert-file=" + l.PKI("apiserver.crt"), "--tls-private-key-file=" + l.PKI("apiserver.key"),
		"--client-ca-file=" + l.PKI("ca.crt"), "--authorization-mode=Node,RBAC", "--anonymous-auth=false",
		"--etcd-servers=" + etcdURL, "--etcd-cafile=" + l.PKI("etcd-ca.crt"),
		"--etcd-certfile=" + l.PKI("etcd-client.crt"), "--etcd-keyfile=" + l.PKI("etcd-client.key"),
		"--kubelet-client-certificate=" + l.PKI("apiserver-kubelet.crt"),
		"--kubelet-client-key=" + l.PKI("apiserver-kubelet.key"),
		"--kubelet-certificate-authority=" + l.PKI("ca.crt"),
		"--kubelet-preferred-address-types=InternalIP",
		"--service-account-issuer=https://kubernetes.default.svc." + layout.Domain,
		"--service-account-key-file=" + l.PKI("service-account.crt"),
		"--service-account-signing-key-file=" + l.PKI("service-account.key"),
		"--service-cluster-ip-range=" + layout.ServiceCIDR,
		"--endpoint-reconciler-type=lease", "--allow-privileged", "--profiling=false",
		"--enable-admission-plugins=NodeRestriction",
		"--audit-policy-file=" + l.Config("audit.yaml"), "--audit-log-path=" + l.AuditLog(),
		// One file: tests count the events of a whole run.
		"--audit-log-maxsize=4096", "--audit-log-maxbackup=1",
	}
}

func managerArgs(l layout.Layout) []string {
	return []string{
		"--kubeconfig=" + l.KubeconfigOf(nameManager), "--leader-elect=false", "--bind-address=127.0.0.1",
		"--use-service-account-credentials", "--root-ca-file=" + l.PKI("ca.crt"),
		"--service-account-private-key-file=" + l.PKI("service-account.key"),
		"--cluster-signing-cert-file=" + l.PKI("ca.crt"), "--cluster-signing-key-file=" + l.PKI("ca.key"),
		"--allocate-node-cidrs", "--cluster-cidr=" + layout.PodCIDR,
		"--service-cluster-ip-range=" + layout.ServiceCIDR,
		"--authentication-kubeconfig=" + l.KubeconfigOf(nameManager),
		"--authorization-kubeconfig=" + l.KubeconfigOf(nameManager),
	}
}

func schedulerArgs(l layout.Layout) []string {
	kubeconfig := l.KubeconfigOf(nameScheduler)
	return []string{
		"--kubeconfig=" + kubeconfig, "--leader-elect=false", "--bind-address=127.0.0.1",
		"--authentication-kubeconfig=" + kubeconfig, "--authorization-kubeconfig=" + kubeconfig,
	}
}

func kubeletArgs(l layout.Layout, nodeIP string) []string {
	return []string{
		"--config=" + l.Config("kubelet.yaml"), "--kubeconfig=" + l.KubeconfigOf(nameKubelet),
		"--hostname-override=" + layout.NodeName, "--node-ip=" + nodeIP,
		"--root-dir=" + l.In("kubelet"), "--cert-dir=" + l.In("kubelet", "pki"),
	}
}
