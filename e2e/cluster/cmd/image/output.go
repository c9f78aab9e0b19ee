// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/agent-sandbox-platform/agent-sandbox/e2e/cluster/image"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/cluster/image/build"
)

func say(std streams, format string, args ...any) {
	_, _ = fmt.Fprintf(std.progress, format+"\n", args...)
}

func reference(prefix, name, version string) string {
	return prefix + "/" + name + ":" + version
}

func product(ctx context.Context, builder build.Builder, name, version, arch string, std streams) (v1.Image, error) {
	say(std, "Compiling %s %s for linux/%s.", name, version, arch)
	img, err := builder.Product(ctx, name, version, arch)
	if err != nil {
		return nil, fmt.Errorf("make the %s image: %w", name, err)
	}
	return img, nil
}

// writeArchive writes an archive and prints its name, digest and file.
func writeArchive(file, ref string, img v1.Image, std streams) error {
	if err := image.WriteArchive(file, ref, img); err != nil {
		return err
	}
	digest, err := img.Digest()
	if err != nil {
		return fmt.Errorf("read the digest of %s: %w", ref, err)
	}
	_, err = fmt.Fprintln(std.out, ref, digest, file)
	return err
}

// cacheFolder returns the folder of that name in the user's cache, or in the
// folder for temporary files when the user has none.
func cacheFolder(name string) string {
	dir, err := os.UserCacheDir()
	if err != nil {
		dir = os.TempDir()
	}
	return filepath.Join(dir, "agent-sandbox", name)
}
