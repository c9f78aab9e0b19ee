// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/agent-sandbox-platform/agent-sandbox/e2e/cluster/image"
)

func say(std streams, format string, args ...any) {
	_, _ = fmt.Fprintf(std.progress, format+"\n", args...)
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
