// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package image_test

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/agent-sandbox-platform/agent-sandbox/e2e/cluster/image"
)

// startRegistry serves a registry over plain HTTP on loopback and returns its
// HOST:PORT.
func startRegistry(t *testing.T, wrap func(http.Handler) http.Handler) string {
	t.Helper()
	handler := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewServer(wrap(handler))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

func open(handler http.Handler) http.Handler { return handler }

func TestPushOfAnImage(t *testing.T) {
	ref := startRegistry(t, open) + "/team/server:1"
	img := build(t, spec(t, "amd64"))
	if err := image.Push(t.Context(), ref, img, image.PushOptions{}); err != nil {
		t.Fatal(err)
	}
	parsed, err := name.ParseReference(ref)
	if err != nil {
		t.Fatal(err)
	}
	got, err := remote.Image(parsed)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Image(got); err != nil {
		t.Errorf("the pushed image is not sound: %v", err)
	}
	if digest(t, got) != digest(t, img) {
		t.Errorf("the registry has %s, want %s", digest(t, got), digest(t, img))
	}
}

func TestPushOfAnIndexForTwoArchitectures(t *testing.T) {
	ref := startRegistry(t, open) + "/team/server:1"
	amd, arm := build(t, spec(t, "amd64")), build(t, spec(t, "arm64"))
	index, err := image.Index(amd, arm)
	if err != nil {
		t.Fatal(err)
	}
	if err := image.Push(t.Context(), ref, index, image.PushOptions{}); err != nil {
		t.Fatal(err)
	}
	parsed, err := name.ParseReference(ref)
	if err != nil {
		t.Fatal(err)
	}
	got, err := remote.Index(parsed)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(got); err != nil {
		t.Errorf("the pushed index is not sound: %v", err)
	}
	manifest, err := got.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if manifest.MediaType != types.OCIImageIndex {
		t.Errorf("media type is %s, want %s", manifest.MediaType, types.OCIImageIndex)
	}
	var platforms []string
	for _, descriptor := range manifest.Manifests {
		platforms = append(platforms, descriptor.Platform.String()+" "+descriptor.Digest.String())
	}
	want := []string{"linux/amd64 " + digest(t, amd), "linux/arm64 " + digest(t, arm)}
	if diff := cmp.Diff(want, platforms); diff != "" {
		t.Errorf("platforms (-want +got):\n%s", diff)
	}
}

func TestAnIndexHasOneImageForAnArchitecture(t *testing.T) {
	_, err := image.Index(build(t, spec(t, "amd64")), build(t, spec(t, "amd64")))
	if err == nil || !strings.Contains(err.Error(), "two images for architecture amd64") {
		t.Errorf("error is %v, want one that names the architecture", err)
	}
}

func TestPushWithCredentials(t *testing.T) {
	host := startRegistry(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			user, password, _ := r.BasicAuth()
			if user != "robot" || password != "right" {
				w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			next.ServeHTTP(w, r)
		})
	})
	img := build(t, spec(t, "amd64"))
	for name, test := range map[string]struct {
		password, want string
	}{
		"right": {"right", ""},
		"wrong": {"wrong", "log in (docker login " + host + ")"},
	} {
		t.Run(name, func(t *testing.T) {
			opts := image.PushOptions{Keychain: keychain{Username: "robot", Password: test.password}}
			err := image.Push(t.Context(), host+"/team/server:1", img, opts)
			if test.want == "" && err != nil {
				t.Errorf("refused: %v", err)
			}
			if test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("error is %v, want one that says %q", err, test.want)
			}
		})
	}
}

func TestPushSaysWhatIsWrong(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	dead := strings.TrimPrefix(gone.URL, "http://")
	broken := startRegistry(t, func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	})
	for name, test := range map[string]struct{ ref, want string }{
		"a registry that does not run": {dead + "/server:1", "registry " + dead + " cannot be reached"},
		"a registry that refuses":      {broken + "/server:1", "registry " + broken + " refused"},
		"a name without a registry":    {"server:1", "write it as HOST/PREFIX/NAME:TAG"},
		"a name without a tag":         {dead + "/server", "write it as HOST/PREFIX/NAME:TAG"},
	} {
		t.Run(name, func(t *testing.T) {
			err := image.Push(t.Context(), test.ref, build(t, spec(t, "amd64")), image.PushOptions{})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error is %v, want one that says %q", err, test.want)
			}
		})
	}
}

// keychain has one set of credentials for every registry.
type keychain authn.AuthConfig

func (k keychain) Resolve(authn.Resource) (authn.Authenticator, error) {
	return authn.FromConfig(authn.AuthConfig(k)), nil
}
