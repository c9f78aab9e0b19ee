// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Command kubernetes is every Kubernetes program of the test cluster in one
// binary: it runs the one whose name is its own base name or, failing that,
// its first argument. One binary links six times faster than six.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // kubectl's credential plugins.
	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	_ "k8s.io/component-base/logs/json/register"          // --logging-format=json.
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // Client metrics.
	_ "k8s.io/component-base/metrics/prometheus/version"  // Version metric.
	kubectlcmd "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

// servers maps the name of each long-running program to its command.
func servers() map[string]func() *cobra.Command {
	return map[string]func() *cobra.Command{
		"kube-apiserver":          apiserver.NewAPIServerCommand,
		"kube-controller-manager": controllermanager.NewControllerManagerCommand,
		"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
		"kube-proxy":              proxy.NewProxyCommand,
		"kubelet":                 func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) },
	}
}

func main() {
	known := servers()
	name := program(known)
	if name == "kubectl" {
		runKubectl()
		return
	}
	server, ok := known[name]
	if !ok {
		names := []string{"kubectl"}
		for n := range known {
			names = append(names, n)
		}
		slices.Sort(names)
		fmt.Fprintf(os.Stderr, "no program %q in this binary; name one of %s\n", name, strings.Join(names, ", "))
		os.Exit(2)
	}
	os.Exit(cli.Run(server()))
}

// program picks the program and drops its name from os.Args when it was given
// as the first argument.
func program(known map[string]func() *cobra.Command) string {
	base := filepath.Base(os.Args[0])
	if _, ok := known[base]; ok || base == "kubectl" || len(os.Args) < 2 {
		return base
	}
	os.Args = os.Args[1:]
	return os.Args[0]
}

// runKubectl is kubectl's own main: verbosity has to be set before the command
// is built, because building it already reads plugins and preferences.
func runKubectl() {
	if _, err := logs.GlogSetter(kubectlcmd.GetLogVerbosity(os.Args)); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	if err := cli.RunNoErrOutput(kubectlcmd.NewDefaultKubectlCommand()); err != nil {
		kubectlutil.CheckErr(err)
	}
}
