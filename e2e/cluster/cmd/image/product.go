// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/agent-sandbox-platform/agent-sandbox/e2e/cluster/image"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/cluster/image/build"
)

// source are the flags of every command that compiles the product.
type source struct {
	dir, version string
}

func (s *source) register(flags *flag.FlagSet) {
	flags.StringVar(&s.dir, "source", ".", "a folder inside the repository")
	flags.StringVar(&s.version, "version", "", "version and tag of the images; empty takes git's")
}

// resolve returns the release that the flags ask for.
func (s *source) resolve(ctx context.Context) (release, error) {
	builder, err := newBuilder(s.dir)
	if err != nil || s.version != "" {
		return release{builder: builder, version: s.version}, err
	}
	version, err := build.Version(ctx, builder.Root)
	return release{builder: builder, version: version}, err
}

// release makes the product's images of one version.
type release struct {
	builder build.Builder
	version string
}

func (r release) image(ctx context.Context, name, arch string, std streams) (v1.Image, error) {
	say(std, "Compiling %s %s for linux/%s.", name, r.version, arch)
	img, err := r.builder.Product(ctx, name, r.version, arch)
	if err != nil {
		return nil, fmt.Errorf("make the %s image: %w", name, err)
	}
	return img, nil
}

func (r release) reference(prefix, name string) string {
	return prefix + "/" + name + ":" + r.version
}

func newBuilder(dir string) (build.Builder, error) {
	root, err := build.FindRoot(dir)
	if err != nil {
		return build.Builder{}, err
	}
	created, err := build.SourceDate(os.Getenv("SOURCE_DATE_EPOCH"))
	return build.Builder{Root: root, Created: created}, err
}

func buildCommand(ctx context.Context, args []string, std streams) error {
	flags := flag.NewFlagSet("build", flag.ContinueOnError)
	var from source
	from.register(flags)
	out := flags.String("out", cacheFolder("images"), "folder of the archives")
	arch := flags.String("arch", runtime.GOARCH, "architecture: amd64 or arm64")
	prefix := flags.String("prefix", "agent-sandbox-platform", "what comes before the images' names")
	if err := parse(flags, args, std); err != nil {
		return err
	}
	if err := require(flags, "out", "prefix"); err != nil {
		return err
	}
	wanted, err := from.resolve(ctx)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(*out, 0o755); err != nil { //nolint:gosec // Images are public.
		return fmt.Errorf("cannot write to %s: %w; choose another folder with -out", *out, err)
	}
	for _, name := range build.Programs() {
		img, err := wanted.image(ctx, name, *arch, std)
		if err != nil {
			return err
		}
		ref := wanted.reference(*prefix, name)
		if err := writeArchive(filepath.Join(*out, name+".tar"), ref, img, std); err != nil {
			return err
		}
	}
	return nil
}

func pushCommand(ctx context.Context, args []string, std streams) error {
	flags := flag.NewFlagSet("push", flag.ContinueOnError)
	var from source
	from.register(flags)
	registry := flags.String("registry", "", "HOST/PREFIX of the images' names")
	arches := flags.String("arch", "amd64,arm64", "architectures, separated by commas")
	if err := parse(flags, args, std); err != nil {
		return err
	}
	if err := require(flags, "registry", "arch"); err != nil {
		return err
	}
	wanted, err := from.resolve(ctx)
	if err != nil {
		return err
	}
	for _, name := range build.Programs() {
		var images []v1.Image
		for arch := range strings.SplitSeq(*arches, ",") {
			img, err := wanted.image(ctx, name, strings.TrimSpace(arch), std)
			if err != nil {
				return err
			}
			images = append(images, img)
		}
		ref := wanted.reference(*registry, name)
		if err := push(ctx, ref, images, std); err != nil {
			return err
		}
	}
	return nil
}

func push(ctx context.Context, ref string, images []v1.Image, std streams) error {
	content, err := pushable(images)
	if err != nil {
		return err
	}
	say(std, "Pushing %s.", ref)
	if err := image.Push(ctx, ref, content, image.PushOptions{}); err != nil {
		return err
	}
	digest, err := content.Digest()
	if err != nil {
		return fmt.Errorf("read the digest of %s: %w", ref, err)
	}
	_, err = fmt.Fprintln(std.out, ref, digest)
	return err
}

func pushable(images []v1.Image) (image.Pushable, error) {
	if len(images) == 1 {
		return images[0], nil
	}
	return image.Index(images...)
}
