// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func userInfo(name string) authenticationv1.UserInfo {
	return authenticationv1.UserInfo{Username: name}
}

// policyConfigMap is a policy ConfigMap of the release namespace.
func policyConfigMap(name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: "agent-sandbox-system", Labels: map[string]string{"platform.agents.x-k8s.io/policy-source": "true"},
		},
		Data: data,
	}
}
