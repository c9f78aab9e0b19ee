// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const (
	// annotationName holds the name under which containerd stores an import.
	annotationName = "io.containerd.image.name"
	layoutVersion  = `{"imageLayoutVersion":"1.0.0"}`
)

// dockerEntry is one image in the docker-archive index of an archive.
type dockerEntry struct {
	Config   string   `json:"Config"`
	RepoTags []string `json:"RepoTags"`
	Layers   []string `json:"Layers"`
}

// WriteArchive writes img to a file as an OCI layout in a tar, named so that a
// Pod with image ref finds it after `ctr -n k8s.io images import`. The file's
// folder must exist; an old file is replaced only by a complete new one.
func WriteArchive(file, ref string, img v1.Image) error {
	name, err := Canonical(ref)
	if err != nil {
		return err
	}
	err = WriteFile(file, func(w io.Writer) error { return writeLayout(w, name, img) })
	if err != nil {
		return fmt.Errorf("cannot write the image archive %s: %w; choose another place", file, err)
	}
	return nil
}

// WriteFile makes a file from what write writes, readable by everyone, and puts
// it in place only when it is complete.
func WriteFile(file string, write func(io.Writer) error) error {
	out, err := os.CreateTemp(filepath.Dir(file), "."+filepath.Base(file)+"-*")
	if err != nil {
		return err
	}
	err = errors.Join(write(out), out.Chmod(modeFile), out.Close())
	if err == nil {
		err = os.Rename(out.Name(), file)
	}
	if err != nil {
		return errors.Join(err, os.Remove(out.Name()))
	}
	return nil
}

func writeLayout(w io.Writer, name string, img v1.Image) error {
	manifest, err := img.Manifest()
	if err != nil {
		return fmt.Errorf("read the manifest: %w", err)
	}
	index, err := layoutIndex(name, img)
	if err != nil {
		return err
	}
	docker := dockerEntry{Config: blobPath(manifest.Config.Digest), RepoTags: []string{name}}
	for _, layer := range manifest.Layers {
		docker.Layers = append(docker.Layers, blobPath(layer.Digest))
	}
	dockerIndex, err := json.Marshal([]dockerEntry{docker})
	if err != nil {
		return fmt.Errorf("encode manifest.json: %w", err)
	}

	out := tar.NewWriter(w)
	if err := writeBlobs(out, img); err != nil {
		return err
	}
	for _, file := range []struct {
		name string
		body []byte
	}{{"index.json", index}, {"manifest.json", dockerIndex}, {"oci-layout", []byte(layoutVersion)}} {
		if err := writeArchiveFile(out, file.name, file.body); err != nil {
			return err
		}
	}
	return out.Close()
}

func layoutIndex(name string, img v1.Image) ([]byte, error) {
	descriptor, err := describe(img)
	if err != nil {
		return nil, err
	}
	descriptor.Annotations = map[string]string{annotationName: name}
	index, err := json.Marshal(v1.IndexManifest{
		SchemaVersion: 2,
		MediaType:     types.OCIImageIndex,
		Manifests:     []v1.Descriptor{*descriptor},
	})
	if err != nil {
		return nil, fmt.Errorf("encode index.json: %w", err)
	}
	return index, nil
}

func writeBlobs(out *tar.Writer, img v1.Image) error {
	layers, err := img.Layers()
	if err != nil {
		return fmt.Errorf("read the layers: %w", err)
	}
	for _, layer := range layers {
		if err := writeLayerBlob(out, layer); err != nil {
			return err
		}
	}
	config, err := img.RawConfigFile()
	if err != nil {
		return fmt.Errorf("read the configuration: %w", err)
	}
	manifest, err := img.RawManifest()
	if err != nil {
		return fmt.Errorf("read the manifest: %w", err)
	}
	for _, body := range [][]byte{config, manifest} {
		digest, _, err := v1.SHA256(bytes.NewReader(body))
		if err != nil {
			return fmt.Errorf("compute a digest: %w", err)
		}
		if err := writeArchiveFile(out, blobPath(digest), body); err != nil {
			return err
		}
	}
	return nil
}

func writeLayerBlob(out *tar.Writer, layer v1.Layer) error {
	digest, err := layer.Digest()
	if err != nil {
		return fmt.Errorf("compute a layer's digest: %w", err)
	}
	content, err := layer.Compressed()
	if err != nil {
		return fmt.Errorf("open layer %s: %w", digest, err)
	}
	defer content.Close() //nolint:errcheck // Read only.
	body, err := io.ReadAll(content)
	if err != nil {
		return fmt.Errorf("read layer %s: %w", digest, err)
	}
	return writeArchiveFile(out, blobPath(digest), body)
}

func writeArchiveFile(out *tar.Writer, name string, body []byte) error {
	return writeEntry(out, &tar.Header{
		Typeflag: tar.TypeReg,
		Name:     name,
		Mode:     modeFile,
		Size:     int64(len(body)),
		ModTime:  time.Unix(0, 0),
		Format:   tar.FormatPAX,
	}, body)
}

func blobPath(digest v1.Hash) string {
	return path.Join("blobs", digest.Algorithm, digest.Hex)
}
