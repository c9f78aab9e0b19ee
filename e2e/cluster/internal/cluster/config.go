// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"os"
	"time"

	"github.com/agent-sandbox-platform/agent-sandbox/e2e/cluster/internal/layout"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/cluster/internal/pki"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/cluster/internal/render"
)

// writeConfig writes all certificates, kubeconfigs and configuration files.
func (c *Cluster) writeConfig(data render.Data) error {
	now := c.clock.Now()
	if err := c.writeCertificates(now, data.NodeIP); err != nil {
		return err
	}
	for name, path := range map[string]string{
		"containerd.toml": c.paths.Config("containerd.toml"),
		"runsc.toml":      c.paths.Config("runsc.toml"),
		"kubelet.yaml":    c.paths.Config("kubelet.yaml"),
		"kube-proxy.yaml": c.paths.Config("kube-proxy.yaml"),
		"audit.yaml":      c.paths.Config("audit.yaml"),
		"values.yaml":     c.paths.Values(),
		"cni.conflist":    c.paths.In("config", "cni", "10-agent-sandbox.conflist"),
	} {
		content, err := render.Config(name, data)
		if err != nil {
			return err
		}
		if err := os.WriteFile(path, content, 0o600); err != nil {
			return fmt.Errorf("configuration: %w", err)
		}
	}
	return nil
}

func (c *Cluster) writeCertificates(now time.Time, nodeIP string) error {
	dir := c.paths.In("pki")
	ca, err := authority("agent-sandbox-cluster", dir, "ca", now)
	if err != nil {
		return err
	}
	etcdCA, err := authority("agent-sandbox-etcd", dir, "etcd-ca", now)
	if err != nil {
		return err
	}
	if err := issue(ca, dir, map[string]pki.Identity{
		"apiserver": {
			Name: "kube-apiserver", IPs: []string{"127.0.0.1", nodeIP, layout.APIServiceIP},
			DNS: []string{
				"localhost", layout.NodeName, "kubernetes", "kubernetes.default", "kubernetes.default.svc",
				"kubernetes.default.svc." + layout.Domain,
			},
		},
		"apiserver-kubelet": {Name: "kube-apiserver-kubelet-client", Groups: []string{"system:masters"}},
		"kubelet-server":    {Name: layout.NodeName, DNS: []string{layout.NodeName}, IPs: []string{nodeIP}},
	}); err != nil {
		return err
	}
	if err := issue(etcdCA, dir, map[string]pki.Identity{
		"etcd-server": {Name: "etcd", DNS: []string{"localhost"}, IPs: []string{"127.0.0.1"}},
		"etcd-client": {Name: "kube-apiserver"},
	}); err != nil {
		return err
	}
	tokens, err := pki.ServiceAccountKey()
	if err != nil {
		return err
	}
	if err := tokens.Save(dir, "service-account"); err != nil {
		return err
	}
	return c.writeKubeconfigs(ca)
}

func authority(name, dir, file string, now time.Time) (*pki.Authority, error) {
	a, err := pki.NewAuthority(name, now)
	if err != nil {
		return nil, err
	}
	pair, err := a.Pair()
	if err != nil {
		return nil, err
	}
	return a, pair.Save(dir, file)
}

func issue(a *pki.Authority, dir string, identities map[string]pki.Identity) error {
	for file, id := range identities {
		pair, err := a.Issue(id)
		if err != nil {
			return err
		}
		if err := pair.Save(dir, file); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) writeKubeconfigs(ca *pki.Authority) error {
	root, err := ca.Pair()
	if err != nil {
		return err
	}
	for path, id := range map[string]pki.Identity{
		c.paths.Kubeconfig():                {Name: "admin", Groups: []string{"system:masters"}},
		c.paths.KubeconfigOf(nameManager):   {Name: "system:kube-controller-manager"},
		c.paths.KubeconfigOf(nameScheduler): {Name: "system:kube-scheduler"},
		c.paths.KubeconfigOf(nameKubelet):   {Name: "system:node:" + layout.NodeName, Groups: []string{"system:nodes"}},
		c.paths.KubeconfigOf(nameProxy):     {Name: "system:kube-proxy"},
	} {
		pair, err := ca.Issue(id)
		if err != nil {
			return err
		}
		if err := os.WriteFile(path, pki.Kubeconfig(apiURL, id.Name, root.Cert, pair), 0o600); err != nil {
			return fmt.Errorf("kubeconfig of %s: %w", id.Name, err)
		}
	}
	return nil
}
