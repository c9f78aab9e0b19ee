// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package debian

import (
	"context"
	"crypto/sha256"
	_ "embed" // For recipe.
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/agent-sandbox-platform/agent-sandbox/e2e/cluster/image"
)

// recipe is the source that turns packages into a layer; a change there makes
// the cached layers useless.
//
//go:embed rootfs.go
var recipe string

// Builder makes the image.
type Builder struct {
	// Cache is a folder that outlives the process. It is made when missing.
	Cache string
	// Progress gets a line for each step that takes time.
	Progress io.Writer
}

// Image returns an image for this machine's architecture that starts python3 as
// root and runs as any other user too.
func (b Builder) Image(ctx context.Context) (v1.Image, error) {
	if err := os.MkdirAll(b.Cache, 0o755); err != nil { //nolint:gosec // Public content.
		return nil, fmt.Errorf("cannot use the cache folder: %w", err)
	}
	file, err := b.layer(ctx)
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromFile(file, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, fmt.Errorf("read the cached layer %s: %w; delete it and try again", file, err)
	}
	return image.FromLayer(image.Spec{
		Cmd:          []string{"python3"},
		Env:          []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8"},
		Architecture: runtime.GOARCH,
		Labels:       map[string]string{"org.opencontainers.image.description": "Debian packages with a shell and Python, for test clusters"},
	}, layer)
}

// layer returns the path of the compressed layer, which it makes when the
// packages changed.
func (b Builder) layer(ctx context.Context) (string, error) {
	work, err := os.MkdirTemp(b.Cache, "work-")
	if err != nil {
		return "", fmt.Errorf("cannot use the cache folder: %w", err)
	}
	defer os.RemoveAll(work) //nolint:errcheck // A leftover harms nothing.

	file, err := b.layerWith(ctx, apt{dir: work}, work)
	if err == nil || ctx.Err() != nil {
		return file, err
	}
	b.say("The machine's package lists do not serve; fetching lists for this build.")
	own := apt{dir: work, ownLists: true}
	if updateErr := own.update(ctx); updateErr != nil {
		return "", errors.Join(err, updateErr)
	}
	return b.layerWith(ctx, own, work)
}

func (b Builder) layerWith(ctx context.Context, source apt, work string) (string, error) {
	files, err := source.resolve(ctx)
	if err != nil {
		return "", err
	}
	cached := filepath.Join(b.Cache, key(files)+".tar.gz")
	if _, err := os.Stat(cached); err == nil {
		return cached, nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("look for the cached layer: %w", err)
	}
	b.say("Downloading %d Debian packages.", len(files))
	archives, err := source.download(ctx, filepath.Join(work, "archives"))
	if err != nil {
		return "", err
	}
	b.say("Making a layer of %d Debian packages.", len(archives))
	tree, err := rootfs(ctx, archives)
	if err != nil {
		return "", err
	}
	layer, err := tree.Layer(time.Unix(0, 0))
	if err != nil {
		return "", err
	}
	return cached, writeLayer(cached, layer)
}

func writeLayer(file string, layer v1.Layer) error {
	content, err := layer.Compressed()
	if err != nil {
		return fmt.Errorf("compress the layer: %w", err)
	}
	defer content.Close() //nolint:errcheck // Read only.
	err = image.WriteFile(file, func(w io.Writer) error {
		_, err := io.Copy(w, content)
		return err
	})
	if err != nil {
		return fmt.Errorf("cannot write the cached layer %s: %w", file, err)
	}
	return nil
}

func (b Builder) say(format string, args ...any) {
	if b.Progress != nil {
		_, _ = fmt.Fprintf(b.Progress, format+"\n", args...)
	}
}

// key names a layer by the recipe and the packages' names, versions and
// architectures.
func key(files []string) string {
	sum := sha256.Sum256([]byte(recipe + "\n" + strings.Join(files, "\n")))
	return hex.EncodeToString(sum[:])
}
