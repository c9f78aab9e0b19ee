// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Metrics returns what the Pods of a component of the release tell Prometheus, by the text
// of the series, such as `a_metric{label="value"}`: labels are in the order of their names.
// What several Pods tell is added up.
func (c *Cluster) Metrics(ctx context.Context, component string) (map[string]float64, error) {
	var pods corev1.PodList
	labels := client.MatchingLabels{"app.kubernetes.io/component": component, "app.kubernetes.io/name": "agent-sandbox"}
	if err := c.List(ctx, &pods, client.InNamespace(ReleaseNamespace), labels); err != nil {
		return nil, err
	}
	told := map[string]float64{}
	for i := range pods.Items {
		text, err := c.Clientset.CoreV1().Pods(ReleaseNamespace).ProxyGet("http", pods.Items[i].Name, "8080", "metrics", nil).DoRaw(ctx)
		if err != nil {
			return nil, fmt.Errorf("metrics of Pod %s: %w", pods.Items[i].Name, err)
		}
		for line := range strings.Lines(string(text)) {
			series, value, found := cutLast(strings.TrimSpace(line))
			if number, err := strconv.ParseFloat(value, 64); found && !strings.HasPrefix(line, "#") && err == nil {
				told[series] += number
			}
		}
	}
	return told, nil
}

// cutLast cuts at the last space: labels may have some.
func cutLast(line string) (before, after string, found bool) {
	i := strings.LastIndexByte(line, ' ')
	if i < 0 {
		return line, "", false
	}
	return line[:i], line[i+1:], true
}
