// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const (
	modeDir     = 0o755
	modeProgram = 0o755
	modeFile    = 0o644
	modeTemp    = 0o1777
	modeLink    = 0o777
)

// Tree is the content of one layer: folders, files and links by their path in
// the image. Everything belongs to 0:0. The zero value is an empty tree. A
// later entry replaces an earlier one of the same path.
type Tree struct {
	nodes map[string]node
}

type node struct {
	kind   byte
	mode   int64
	target string
	body   []byte
}

// AddDir adds a folder. The folders above any entry need no call of their own;
// they get mode 0755.
func (t *Tree) AddDir(name string, mode int64) error {
	return t.add(name, node{kind: tar.TypeDir, mode: mode})
}

// AddFile adds a regular file.
func (t *Tree) AddFile(name string, mode int64, body []byte) error {
	return t.add(name, node{kind: tar.TypeReg, mode: mode, body: body})
}

// AddSymlink adds a symbolic link; target is taken as written.
func (t *Tree) AddSymlink(name, target string) error {
	return t.add(name, node{kind: tar.TypeSymlink, mode: modeLink, target: target})
}

// AddCopy adds a regular file with the content and mode of another.
func (t *Tree) AddCopy(name, source string) error {
	key, err := clean(source)
	if err != nil {
		return err
	}
	n, found := t.nodes[key]
	if !found || n.kind != tar.TypeReg {
		return fmt.Errorf("%s cannot be a copy of %s, which is no file of the image", name, source)
	}
	return t.add(name, n)
}

// Has tells whether the tree has an entry of that path.
func (t *Tree) Has(name string) bool {
	key, err := clean(name)
	if err != nil {
		return false
	}
	_, found := t.nodes[key]
	return found
}

// Layer returns the tree as a compressed OCI layer whose entries are sorted
// and dated created.
func (t *Tree) Layer(created time.Time) (v1.Layer, error) {
	var content bytes.Buffer
	if err := t.writeTar(&content, created); err != nil {
		return nil, err
	}
	opener := func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content.Bytes())), nil
	}
	layer, err := tarball.LayerFromOpener(opener, tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
	if err != nil {
		return nil, fmt.Errorf("make a layer: %w", err)
	}
	return layer, nil
}

func (t *Tree) add(name string, n node) error {
	key, err := clean(name)
	if err != nil {
		return err
	}
	if t.nodes == nil {
		t.nodes = map[string]node{}
	}
	for parent := path.Dir(key); parent != "."; parent = path.Dir(parent) {
		above, found := t.nodes[parent]
		switch {
		case !found:
			t.nodes[parent] = node{kind: tar.TypeDir, mode: modeDir}
		case above.kind != tar.TypeDir:
			return fmt.Errorf("%s cannot be added: /%s is not a folder", name, parent)
		}
	}
	if old, found := t.nodes[key]; found && (old.kind == tar.TypeDir) != (n.kind == tar.TypeDir) {
		return fmt.Errorf("%s is a folder and something else at once", name)
	}
	t.nodes[key] = n
	return nil
}

func (t *Tree) writeTar(w io.Writer, created time.Time) error {
	out := tar.NewWriter(w)
	// A parent is a prefix of its children, so sorted order is creation order.
	for _, name := range slices.Sorted(maps.Keys(t.nodes)) {
		n := t.nodes[name]
		header := &tar.Header{
			Typeflag: n.kind,
			Name:     name,
			Linkname: n.target,
			Mode:     n.mode,
			Size:     int64(len(n.body)),
			ModTime:  created,
			Format:   tar.FormatPAX,
		}
		if n.kind == tar.TypeDir {
			header.Name += "/"
		}
		if err := writeEntry(out, header, n.body); err != nil {
			return err
		}
	}
	return out.Close()
}

func writeEntry(out *tar.Writer, header *tar.Header, body []byte) error {
	if err := out.WriteHeader(header); err != nil {
		return fmt.Errorf("write %s: %w", header.Name, err)
	}
	if _, err := out.Write(body); err != nil {
		return fmt.Errorf("write %s: %w", header.Name, err)
	}
	return nil
}

// clean returns a path in the image without its leading slash.
func clean(name string) (string, error) {
	if !path.IsAbs(name) || path.Clean(name) != name || name == "/" {
		return "", fmt.Errorf("path in the image %q is not absolute and clean; write it like /etc/passwd", name)
	}
	return strings.TrimPrefix(name, "/"), nil
}
