// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"encoding/base64"
	"fmt"
)

// Kubeconfig renders a kubeconfig that needs no other file.
func Kubeconfig(server, user string, ca []byte, client Pair) []byte {
	encode := base64.StdEncoding.EncodeToString
	return fmt.Appendf(nil, `apiVersion: v1
kind: Config
clusters:
- name: agent-sandbox
  cluster:
    server: %s
    certificate-authority-data: %s
users:
- name: %s
  user:
    client-certificate-data: %s
    client-key-data: %s
contexts:
- name: agent-sandbox
  context: {cluster: agent-sandbox, user: %q}
current-context: agent-sandbox
`, server, encode(ca), user, encode(client.Cert), encode(client.Key), user)
}
