// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"fmt"

	"github.com/distribution/reference"
)

// Canonical returns the complete name under which a container runtime looks up
// an image that a Pod names ref: with its registry, and its tag ("latest" when
// there is none). A reference by digest is refused, since an archive has tags.
func Canonical(ref string) (string, error) {
	named, err := reference.ParseNormalizedNamed(ref)
	if err != nil {
		return "", fmt.Errorf("image name %q: %w; write it like team/name:tag", ref, err)
	}
	if _, digested := named.(reference.Digested); digested {
		return "", fmt.Errorf("image name %q has a digest; name the image by a tag", ref)
	}
	return reference.TagNameOnly(named).String(), nil
}
