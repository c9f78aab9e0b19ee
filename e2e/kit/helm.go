// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/cli"
	"helm.sh/helm/v3/pkg/cli/values"
	"helm.sh/helm/v3/pkg/getter"
)

// chartPath is where the chart lies, seen from the folder of the stories.
const chartPath = "../charts/agent-sandbox"

// helmTimeout bounds how long Helm waits for the bundle to be ready.
const helmTimeout = 5 * time.Minute

// Helm is one release of the chart, as the platform engineer handles it.
type Helm struct {
	// Release is the name of the release.
	Release string
	// Namespace is where it is installed.
	Namespace string

	cluster *Cluster
}

// Helm returns a handle on a release.
func (c *Cluster) Helm(release, namespace string) Helm {
	return Helm{Release: release, Namespace: namespace, cluster: c}
}

// Install installs the release, or upgrades it, with the values files of the given
// environments, and waits until it is ready.
func (h Helm) Install(ctx context.Context, environments []string, set ...string) error {
	config, err := h.configuration()
	if err != nil {
		return err
	}
	vals, err := h.values(environments, set)
	if err != nil {
		return err
	}
	chart, err := loader.Load(chartPath)
	if err != nil {
		return fmt.Errorf("load the chart: %w", err)
	}
	if installed, err := h.installed(config); err != nil {
		return err
	} else if installed {
		upgrade := action.NewUpgrade(config)
		upgrade.Namespace, upgrade.Wait, upgrade.Timeout = h.Namespace, true, helmTimeout
		_, err = upgrade.RunWithContext(ctx, h.Release, chart, vals)
		return err
	}
	install := action.NewInstall(config)
	install.ReleaseName, install.Namespace, install.CreateNamespace = h.Release, h.Namespace, true
	install.Wait, install.Timeout = true, helmTimeout
	// CRDs that an earlier release left behind, as crds.keep says, are taken over.
	install.TakeOwnership = true
	_, err = install.RunWithContext(ctx, chart, vals)
	return err
}

// Test runs the tests of the release, as helm test does.
func (h Helm) Test() error {
	config, err := h.configuration()
	if err != nil {
		return err
	}
	test := action.NewReleaseTesting(config)
	test.Namespace, test.Timeout = h.Namespace, helmTimeout
	_, err = test.Run(h.Release)
	return err
}

// Uninstall removes the release and waits until it is gone.
func (h Helm) Uninstall() error {
	config, err := h.configuration()
	if err != nil {
		return err
	}
	uninstall := action.NewUninstall(config)
	uninstall.Wait, uninstall.Timeout = true, helmTimeout
	_, err = uninstall.Run(h.Release)
	return err
}

func (h Helm) installed(config *action.Configuration) (bool, error) {
	list := action.NewList(config)
	list.All = true
	list.SetStateMask()
	releases, err := list.Run()
	if err != nil {
		return false, fmt.Errorf("list releases: %w", err)
	}
	for _, r := range releases {
		if r.Name == h.Release {
			return true, nil
		}
	}
	return false, nil
}

func (h Helm) values(environments, set []string) (map[string]any, error) {
	options := values.Options{Values: set}
	for _, env := range environments {
		options.ValueFiles = append(options.ValueFiles, filepath.Join(chartPath, "values-"+env+".yaml"))
	}
	if os.Getenv("E2E_VALUES") != "" {
		options.ValueFiles = append(options.ValueFiles, os.Getenv("E2E_VALUES"))
	}
	options.StringValues = []string{"image.tag=" + os.Getenv("IMAGE_TAG")}
	return options.MergeValues(getter.All(cli.New()))
}

func (h Helm) configuration() (*action.Configuration, error) {
	settings := cli.New()
	settings.KubeConfig = h.cluster.Kubeconfig
	settings.SetNamespace(h.Namespace)
	config := new(action.Configuration)
	quiet := func(string, ...any) {}
	if err := config.Init(settings.RESTClientGetter(), h.Namespace, "secret", quiet); err != nil {
		return nil, fmt.Errorf("prepare Helm: %w", err)
	}
	return config, nil
}
