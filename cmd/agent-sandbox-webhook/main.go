// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Command agent-sandbox-webhook hardens and judges Sandboxes, templates, pools and
// claims before they are stored. With the argument cleanup it deletes its webhook
// configurations instead.
package main

import (
	"fmt"
	"os"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/agent-sandbox-platform/agent-sandbox/webhook"
)

func main() {
	if err := webhook.Main(ctrl.SetupSignalHandler(), os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "agent-sandbox-webhook:", err)
		os.Exit(1)
	}
}
