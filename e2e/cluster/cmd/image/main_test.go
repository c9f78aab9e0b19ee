// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/agent-sandbox-platform/agent-sandbox/e2e/cluster/image/build"
)

// sources returns the root of a repository like this one with stand-ins for the
// platform's programs.
func sources(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	writeFile(t, filepath.Join(root, "go.mod"), "module "+build.MainModule+"\n\ngo 1.26\n")
	for _, program := range build.Programs() {
		for _, command := range append([]string{program}, build.Companions(program)...) {
			writeFile(t, filepath.Join(root, "cmd", command, "main.go"),
				"package main\n\nfunc main() {}\n")
		}
	}
	return root
}

func writeFile(t *testing.T, file, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// call runs a command and returns its exit code, output and progress.
func call(t *testing.T, args ...string) (code int, out, progress string) {
	t.Helper()
	var outBuffer, progressBuffer bytes.Buffer
	code = run(t.Context(), args, streams{out: &outBuffer, progress: &progressBuffer})
	return code, outBuffer.String(), progressBuffer.String()
}

func TestBuildWritesAnArchiveForEachProgram(t *testing.T) {
	var outputs []string
	for range 2 {
		folder := filepath.Join(t.TempDir(), "new", "images")
		code, out, progress := call(t, "build", "-source", sources(t), "-version", "v1", "-out", folder)
		if code != 0 {
			t.Fatalf("exit code is %d: %s", code, progress)
		}
		for _, program := range build.Programs() {
			file := filepath.Join(folder, program+".tar")
			if _, err := os.Stat(file); err != nil {
				t.Error(err)
			}
			line := regexp.MustCompile(`(?m)^agent-sandbox-platform/` + program + `:v1 sha256:[0-9a-f]{64} ` + file + `$`)
			if !line.MatchString(out) {
				t.Errorf("printed %q, want a line like %s", out, line)
			}
		}
		outputs = append(outputs, strings.ReplaceAll(out, folder, ""))
	}
	if diff := cmp.Diff(outputs[0], outputs[1]); diff != "" {
		t.Errorf("two builds print different names or digests (-first +second):\n%s", diff)
	}
}

func TestPushSendsEveryProgramForBothArchitectures(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	prefix := strings.TrimPrefix(server.URL, "http://") + "/team"
	code, out, progress := call(t, "push", "-source", sources(t), "-version", "v1", "-registry", prefix)
	if code != 0 {
		t.Fatalf("exit code is %d: %s", code, progress)
	}
	for _, program := range build.Programs() {
		ref, err := name.ParseReference(prefix + "/" + program + ":v1")
		if err != nil {
			t.Fatal(err)
		}
		index, err := remote.Index(ref)
		if err != nil {
			t.Fatal(err)
		}
		digest, err := index.Digest()
		if err != nil {
			t.Fatal(err)
		}
		if line := ref.String() + " " + digest.String() + "\n"; !strings.Contains(out, line) {
			t.Errorf("printed %q, want the line %q", out, line)
		}
		manifest, err := index.IndexManifest()
		if err != nil {
			t.Fatal(err)
		}
		if len(manifest.Manifests) != 2 {
			t.Errorf("%s has %d architectures, want 2", ref, len(manifest.Manifests))
		}
	}
}

func TestPushOfOneArchitectureIsABareImage(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	prefix := strings.TrimPrefix(server.URL, "http://")
	code, _, progress := call(t, "push", "-source", sources(t), "-version", "v1", "-registry", prefix, "-arch", "arm64")
	if code != 0 {
		t.Fatalf("exit code is %d: %s", code, progress)
	}
	ref, err := name.ParseReference(prefix + "/" + build.Programs()[0] + ":v1")
	if err != nil {
		t.Fatal(err)
	}
	descriptor, err := remote.Get(ref)
	if err != nil {
		t.Fatal(err)
	}
	if !descriptor.MediaType.IsImage() {
		t.Errorf("media type is %s, want an image's", descriptor.MediaType)
	}
}

func TestTheProbeImageIsNamedAsAsked(t *testing.T) {
	for want, args := range map[string][]string{
		"agent-sandbox-platform/probe:test": {"probe"},
		"registry.example/probe:3":          {"probe", "-ref", "registry.example/probe:3"},
	} {
		t.Run(want, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "image.tar")
			code, out, progress := call(t, append(args, "-out", file)...)
			if code != 0 {
				t.Fatalf("exit code is %d: %s", code, progress)
			}
			if !strings.HasPrefix(out, want+" sha256:") || !strings.HasSuffix(out, " "+file+"\n") {
				t.Errorf("printed %q, want %q, the digest and %q", out, want, file)
			}
		})
	}
}

func TestErrorsAreOneSentence(t *testing.T) {
	root := sources(t)
	file := filepath.Join(root, "go.mod")
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	dead := strings.TrimPrefix(gone.URL, "http://")
	for name, test := range map[string]struct {
		args []string
		code int
		want string
	}{
		"no command":          {nil, exitUsage, "use one of build, push"},
		"an unknown command":  {[]string{"pull"}, exitUsage, `unknown command "pull"; use one of`},
		"an unknown flag":     {[]string{"build", "-to", "x"}, exitUsage, "-to; see image build -help"},
		"an argument":         {[]string{"build", "x"}, exitUsage, `build takes no argument "x"`},
		"no registry":         {[]string{"push"}, exitUsage, "push needs -registry (HOST/PREFIX"},
		"no file":             {[]string{"probe"}, exitUsage, "probe needs -out"},
		"no name for Debian":  {[]string{"debian", "-out", "x"}, exitUsage, "debian needs -ref"},
		"a folder not ours":   {[]string{"build", "-source", t.TempDir()}, exitFailed, "name its folder with -source"},
		"no git":              {[]string{"build", "-source", root}, exitFailed, "name it with -version"},
		"unwritable output":   {[]string{"build", "-source", root, "-version", "v1", "-out", file}, exitFailed, "choose another folder with -out"},
		"an unknown platform": {[]string{"build", "-source", root, "-version", "v1", "-out", root, "-arch", "vax"}, exitFailed, "vax"},
		"a bad version":       {[]string{"build", "-source", root, "-version", "a b", "-out", root}, exitFailed, `version "a b" cannot be`},
		"a dead registry": {
			[]string{"push", "-source", root, "-version", "v1", "-registry", dead, "-arch", "amd64"},
			exitFailed, "registry " + dead + " cannot be reached",
		},
		"no host in the registry": {
			[]string{"push", "-source", root, "-version", "v1", "-registry", "team", "-arch", "amd64"},
			exitFailed, "write it as HOST/PREFIX/NAME:TAG",
		},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, progress := call(t, test.args...)
			if code != test.code {
				t.Errorf("exit code is %d, want %d", code, test.code)
			}
			lines := strings.Split(strings.TrimSuffix(progress, "\n"), "\n")
			last := lines[len(lines)-1]
			if !strings.HasPrefix(last, "image: ") || !strings.Contains(last, test.want) {
				t.Errorf("ends with %q, want a sentence that says %q", last, test.want)
			}
			if strings.Contains(out, "sha256:") {
				t.Errorf("printed a digest of nothing: %q", out)
			}
		})
	}
}

func TestABadDateIsRefused(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "today")
	code, _, progress := call(t, "build", "-source", sources(t), "-version", "v1", "-out", t.TempDir())
	if code != exitFailed || !strings.Contains(progress, `SOURCE_DATE_EPOCH "today"`) {
		t.Errorf("exit code %d, %q; want the variable and its value", code, progress)
	}
}

func TestHelp(t *testing.T) {
	if code, out, _ := call(t, "help"); code != 0 || out != usage {
		t.Errorf("exit code %d, %q; want the usage", code, out)
	}
	if code, _, progress := call(t, "push", "-help"); code != 0 || !strings.Contains(progress, "-registry") {
		t.Errorf("exit code %d, %q; want the flags", code, progress)
	}
}
