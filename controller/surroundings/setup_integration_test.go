// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package surroundings

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/config"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/apiserver"
)

var server *apiserver.Server

func TestMain(m *testing.M) { os.Exit(apiserver.Main(m, apiserver.Options{NoFsync: true}, &server)) }

// While the controller runs, with its own role, a node joins and leaves and a Service
// comes: the configuration follows without a restart, and followers hear of it.
func TestTheCacheFollowsNodesAndServices(t *testing.T) {
	e := server.NewEnvironment(t)
	base := apiserver.Platform()
	base.EgressProfiles["git"] = config.EgressProfile{
		Rules: []config.EgressRule{{Services: []config.EgressService{{Namespace: e.Namespace, Name: "git"}}}},
	}
	var watcher *Watcher
	var follower <-chan event.GenericEvent
	e.Run(apiserver.Setup{Add: func(ctx context.Context, mgr ctrl.Manager) (err error) {
		if watcher, err = New(ctx, base, mgr.GetAPIReader(), prometheus.NewPedanticRegistry()); err != nil {
			return err
		}
		follower = watcher.Follow()
		return watcher.SetUp(mgr)
	}})
	const address = "198.51.100.9"
	closed := func(want bool) func() error {
		return func() error {
			if cidrs := watcher.Platform().Cluster.CIDRs; slices.Contains(cidrs, address+"/32") != want {
				return fmt.Errorf("the ranges are %v", cidrs)
			}
			return nil
		}
	}
	if err := closed(false)(); err != nil {
		t.Fatalf("at the start: %v", err)
	}
	joining := node("node-of-"+e.Namespace, address)
	joins(e, joining)
	e.Eventually("the address of the new node is closed", closed(true))
	e.Eventually("the follower is told", func() error {
		if !told(follower) {
			return errors.New("it is not")
		}
		return nil
	})
	if err := e.Client.Delete(t.Context(), joining.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	e.Eventually("it is open again", closed(false))

	more := serviceCIDR("34.118.224.0/20")
	more.Name = "more-of-" + e.Namespace
	if err := e.Client.Create(t.Context(), more); err != nil {
		t.Fatal(err)
	}
	e.Eventually("the new range of Services is closed", func() error {
		if cidrs := watcher.Platform().Cluster.CIDRs; !slices.Contains(cidrs, more.Spec.CIDRs[0]) {
			return fmt.Errorf("the ranges are %v", cidrs)
		}
		return nil
	})

	git := service(map[string]string{"app": "git"})
	git.Namespace = e.Namespace
	e.Create(git)
	e.Eventually("the profile has the Pods behind the Service", func() error {
		rules := watcher.Platform().EgressProfiles["git"].Rules
		if len(rules) != 1 || rules[0].PodSelector == nil || rules[0].PodSelector.MatchLabels["app"] != "git" {
			return fmt.Errorf("its rules are %+v", rules)
		}
		return nil
	})
}
