// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gopkg.in/yaml.v3"

	"github.com/agent-sandbox-platform/agent-sandbox/e2e/cluster/internal/layout"
)

func data() Data {
	return Data{
		Layout: layout.New("/state"), NodeIP: "192.0.2.7",
		Images: map[string]string{
			"pause": "example/pause:1", "coredns": "example/coredns:1",
			"kube-network-policies": "example/policies:1", "storage-provisioner": "example/storage:1",
		},
	}
}

func config(t *testing.T, name string) string {
	t.Helper()
	raw, err := Config(name, data())
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestConfigurationsPointIntoTheClustersOwnFolders(t *testing.T) {
	run := layout.New("/state").Run
	tests := map[string][]string{
		"containerd.toml": {`root = "/state/containerd"`, `address = "` + run + `/containerd.sock"`, `sandbox = "example/pause:1"`, "restrict_oom_score_adj = true"},
		"runsc.toml":      {`binary_name = "/state/bin/runsc"`, `root = "` + run + `/runsc"`},
		"kubelet.yaml":    {"containerRuntimeEndpoint: unix://" + run + "/containerd.sock", "failCgroupV1: false", "clusterDNS: [10.96.0.10]"},
		"kube-proxy.yaml": {"mode: nftables", "kubeconfig: /state/config/kube-proxy.kubeconfig"},
		"audit.yaml":      {"level: Metadata"},
		"values.yaml":     {"- 10.244.0.0/16", "- 10.96.0.0/16", "- 192.0.2.7/32"},
	}
	for name, lines := range tests {
		t.Run(name, func(t *testing.T) {
			got := config(t, name)
			for _, line := range lines {
				if !strings.Contains(got, line) {
					t.Errorf("%s lacks %q:\n%s", name, line, got)
				}
			}
		})
	}
}

func TestTheNetworkConfigurationIsJSONWithTheNodesRange(t *testing.T) {
	var conf struct {
		Plugins []struct {
			Type string `json:"type"`
			IPAM struct {
				Ranges [][]struct {
					Subnet string `json:"subnet"`
				} `json:"ranges"`
			} `json:"ipam"`
		} `json:"plugins"`
	}
	if err := json.Unmarshal([]byte(config(t, "cni.conflist")), &conf); err != nil {
		t.Fatal(err)
	}
	if len(conf.Plugins) != 2 || conf.Plugins[0].Type != "bridge" || conf.Plugins[0].IPAM.Ranges[0][0].Subnet != layout.NodePodCIDR {
		t.Errorf("plugins: got %+v, want a bridge in %s and a portmap", conf.Plugins, layout.NodePodCIDR)
	}
}

func TestEveryManifestIsAnObjectAndEveryImageIsTheClustersOwn(t *testing.T) {
	raw, err := Manifests(data())
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]int{}
	decoder := yaml.NewDecoder(bytes.NewReader(raw))
	for {
		var object struct {
			Kind     string                `yaml:"kind"`
			Metadata struct{ Name string } `yaml:"metadata"`
		}
		if err := decoder.Decode(&object); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if object.Kind == "" || object.Metadata.Name == "" {
			t.Errorf("an object without kind or name: %+v", object)
		}
		kinds[object.Kind]++
	}
	want := map[string]int{
		"ClusterRole": 3, "ClusterRoleBinding": 3, "ConfigMap": 1, "DaemonSet": 2, "Deployment": 2,
		"RuntimeClass": 1, "Service": 1, "ServiceAccount": 3, "StorageClass": 1,
	}
	if diff := cmp.Diff(want, kinds); diff != "" {
		t.Errorf("kinds (-want +got):\n%s", diff)
	}
	if got := strings.Count(string(raw), "image: example/"); got != 4 {
		t.Errorf("images of the cluster's own: got %d, want 4", got)
	}
}
