// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"os"
	"runtime"

	"github.com/agent-sandbox-platform/agent-sandbox/e2e/cluster/image"
)

// ownImages are the images that the cluster itself runs: the program of each,
// which is also the image's name.
func ownImages() []string {
	return []string{"pause", "coredns", "kube-network-policies", "storage-provisioner"}
}

// imageRefs are the references of the cluster's own images, by name.
func imageRefs() map[string]string {
	refs := map[string]string{}
	for _, name := range ownImages() {
		refs[name] = "docker.io/agent-sandbox-platform/cluster-" + name + ":local"
	}
	return refs
}

// loadOwnImages packs the built programs and gives them to containerd.
func (c *Cluster) loadOwnImages(ctx context.Context) error {
	refs := imageRefs()
	for _, name := range ownImages() {
		img, err := image.FromBinaries(image.Spec{
			Files:        map[string]string{"/" + name: c.paths.Bin(name)},
			Entrypoint:   []string{"/" + name},
			Architecture: runtime.GOARCH,
		})
		if err != nil {
			return fmt.Errorf("image of %s: %w", name, err)
		}
		archive := c.paths.In("images", name+".tar")
		if err := image.WriteArchive(archive, refs[name], img); err != nil {
			return fmt.Errorf("image of %s: %w", name, err)
		}
		if err := c.importArchive(ctx, archive); err != nil {
			return err
		}
		if err := os.Remove(archive); err != nil {
			return fmt.Errorf("image of %s: %w", name, err)
		}
	}
	return nil
}

// Load imports image archives, OCI or docker, into the node's containerd.
func (c *Cluster) Load(ctx context.Context, archives []string) error {
	if err := c.requireRunning(ctx); err != nil {
		return err
	}
	for _, archive := range archives {
		if err := c.importArchive(ctx, archive); err != nil {
			return err
		}
		c.say("loaded %s", archive)
	}
	return nil
}

func (c *Cluster) importArchive(ctx context.Context, archive string) error {
	if _, err := c.ctr(ctx, "images", "import", "--local", archive); err != nil {
		return fmt.Errorf("image archive %s was not loaded: %w", archive, err)
	}
	return nil
}
