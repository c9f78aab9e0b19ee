// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Pushable is what a registry takes: a v1.Image or a v1.ImageIndex.
type Pushable interface {
	remote.Taggable
	partial.Describable
}

// PushOptions are how a registry is spoken to. The zero value is good.
type PushOptions struct {
	// Keychain finds credentials; nil means those that the usual tools store
	// for this user.
	Keychain authn.Keychain
	// Transport carries the requests; nil means the library's own.
	Transport http.RoundTripper
}

// Index joins images of several architectures under one digest, in the order
// given.
func Index(images ...v1.Image) (v1.ImageIndex, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	seen := map[string]bool{}
	for _, img := range images {
		descriptor, err := describe(img)
		if err != nil {
			return nil, err
		}
		architecture := descriptor.Platform.Architecture
		if seen[architecture] {
			return nil, fmt.Errorf("two images for architecture %s cannot share one name", architecture)
		}
		seen[architecture] = true
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: img, Descriptor: *descriptor})
	}
	return index, nil
}

// Push sends an image or index to the registry that ref names (HOST/PREFIX/NAME:TAG).
// An error says whether the registry was not reached or refused, and what to do.
func Push(ctx context.Context, ref string, content Pushable, opts PushOptions) error {
	tag, err := name.NewTag(ref, name.StrictValidation)
	if err != nil {
		return fmt.Errorf("image name %q: %w; write it as HOST/PREFIX/NAME:TAG", ref, err)
	}
	options := []remote.Option{remote.WithContext(ctx)}
	if opts.Keychain == nil {
		opts.Keychain = authn.DefaultKeychain
	}
	options = append(options, remote.WithAuthFromKeychain(opts.Keychain))
	if opts.Transport != nil {
		options = append(options, remote.WithTransport(opts.Transport))
	}
	if err := remote.Push(tag, content, options...); err != nil {
		return explainPush(tag, err)
	}
	return nil
}

func explainPush(tag name.Tag, err error) error {
	host := tag.RegistryStr()
	if refusal, ok := errors.AsType[*transport.Error](err); ok {
		switch refusal.StatusCode {
		case http.StatusUnauthorized, http.StatusForbidden:
			return fmt.Errorf("registry %s does not let you push %s: %w; log in (docker login %s) with a user who may write there",
				host, tag, err, host)
		default:
			return fmt.Errorf("registry %s refused %s: %w", host, tag, err)
		}
	}
	_, badURL := errors.AsType[*url.Error](err)
	_, badNet := errors.AsType[net.Error](err)
	if badURL || badNet {
		return fmt.Errorf("registry %s cannot be reached: %w; check its name and port, and that it runs", host, err)
	}
	return fmt.Errorf("push %s: %w", tag, err)
}

// describe returns the descriptor of an image with its platform.
func describe(img v1.Image) (*v1.Descriptor, error) {
	descriptor, err := partial.Descriptor(img)
	if err != nil {
		return nil, fmt.Errorf("describe the image: %w", err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("read the image's configuration: %w", err)
	}
	descriptor.Platform = &v1.Platform{OS: config.OS, Architecture: config.Architecture}
	return descriptor, nil
}
