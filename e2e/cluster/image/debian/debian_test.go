// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package debian

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
)

func TestParseURIs(t *testing.T) {
	got, err := parseURIs("NOTE: only a simulation\n" +
		"'http://x/pool/s/sed/sed_4.9_amd64.deb' sed_4.9_amd64.deb 329092 SHA256:00\n" +
		"'http://x/pool/a/acl/libacl1_2.3_amd64.deb' libacl1_1%3a2.3_amd64.deb 31488 SHA256:00\n")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"libacl1_1%3a2.3_amd64.deb", "sed_4.9_amd64.deb"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if _, err := parseURIs("\n"); err == nil {
		t.Error("an empty list is no error, though no image can be made of it")
	}
}

func TestKeyChangesWithAPackage(t *testing.T) {
	if key([]string{"a_1", "b_1"}) == key([]string{"a_1", "b_2"}) {
		t.Error("another version has the same key")
	}
}

func TestPlace(t *testing.T) {
	for entry, want := range map[string]string{
		"./":                  "/",
		"./bin/sh":            "/usr/bin/sh",
		"./bin/":              "/usr/bin",
		"./lib64/ld.so":       "/usr/lib64/ld.so",
		"./usr/bin/env":       "/usr/bin/env",
		"./binary/x":          "/binary/x",
		"./etc/../../bin/x":   "/usr/bin/x",
		"./var/lib/dpkg/info": "/var/lib/dpkg/info",
	} {
		if got := place(entry); got != want {
			t.Errorf("%s goes to %s, want %s", entry, got, want)
		}
	}
}

// makePackage builds a Debian package whose files are made in its folder.
func makePackage(t *testing.T, name string, fill func(root string) error) string {
	t.Helper()
	root := t.TempDir()
	control := "Package: " + name + "\nVersion: 1\nArchitecture: all\nMaintainer: T <t@example.com>\nDescription: test\n"
	err := errors.Join(
		os.Chmod(root, 0o755),
		os.MkdirAll(filepath.Join(root, "DEBIAN"), 0o755),
		os.WriteFile(filepath.Join(root, "DEBIAN", "control"), []byte(control), 0o644),
		fill(root),
	)
	if err != nil {
		t.Fatal(err)
	}
	archive := filepath.Join(t.TempDir(), name+".deb")
	if out, err := exec.CommandContext(t.Context(), "dpkg-deb", "--build", root, archive).CombinedOutput(); err != nil {
		t.Fatalf("dpkg-deb: %v: %s", err, out)
	}
	return archive
}

func TestRootfsMergesPackages(t *testing.T) {
	needs(t, "dpkg-deb")
	shell := makePackage(t, "shell", func(root string) error {
		return errors.Join(
			os.MkdirAll(filepath.Join(root, "bin"), 0o755),
			os.WriteFile(filepath.Join(root, "bin", "dash"), []byte("dash"), 0o755),
			os.Symlink("dash", filepath.Join(root, "bin", "sh")),
			os.Link(filepath.Join(root, "bin", "dash"), filepath.Join(root, "bin", "hard")),
			os.MkdirAll(filepath.Join(root, "usr/share/man/man1"), 0o755),
			os.WriteFile(filepath.Join(root, "usr/share/man/man1/sh.1"), []byte("manual"), 0o644),
		)
	})
	tool := makePackage(t, "tool", func(root string) error {
		program := filepath.Join(root, "usr/bin/su")
		return errors.Join(
			os.MkdirAll(filepath.Join(root, "usr/bin"), 0o755),
			os.WriteFile(program, []byte("su"), 0o755),
			os.Chmod(program, 0o755|os.ModeSetuid|os.ModeSetgid),
			os.MkdirAll(filepath.Join(root, "usr/share/doc/tool"), 0o755),
			os.WriteFile(filepath.Join(root, "usr/share/doc/tool/copyright"), []byte("c"), 0o644),
			os.WriteFile(filepath.Join(root, "usr/share/doc/tool/NEWS"), []byte("n"), 0o644),
		)
	})
	tree, err := rootfs(t.Context(), []string{shell, tool})
	if err != nil {
		t.Fatal(err)
	}
	layer, err := tree.Layer(time.Unix(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	walk(t, layer, func(header *tar.Header, body string) {
		if !strings.HasPrefix(header.Name, "etc") && header.Typeflag != tar.TypeDir {
			got[header.Name] = header.FileInfo().Mode().String() + " " + header.Linkname + body
		}
	})
	want := map[string]string{
		"bin":                          "Lrwxrwxrwx usr/bin",
		"usr/bin/awk":                  "Lrwxrwxrwx mawk",
		"usr/bin/dash":                 "-rwxr-xr-x dash",
		"usr/bin/hard":                 "-rwxr-xr-x dash",
		"usr/bin/python":               "Lrwxrwxrwx python3",
		"usr/bin/sh":                   "Lrwxrwxrwx dash",
		"usr/bin/su":                   "-rwxr-xr-x su",
		"usr/share/doc/tool/copyright": "-rw-r--r-- c",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

// The whole way, from the machine's package lists to running programs.
func TestTheImageHasAShellAndPython(t *testing.T) {
	if testing.Short() {
		t.Skip("downloads packages")
	}
	needs(t, "apt-get", "dpkg-deb")
	builder := Builder{Cache: t.TempDir()}
	img, err := builder.Image(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	again, err := builder.Image(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if first, second := digest(t, img), digest(t, again); first != second {
		t.Errorf("the cached image has digest %s, the first had %s", second, first)
	}
	if os.Getuid() != 0 {
		t.Skip("only root can change the root folder to run the image's programs")
	}
	root := unpack(t, img)
	for _, uid := range []uint32{0, 65532, 12345} {
		for command, want := range map[string]string{
			"ls /etc/passwd | cat && echo done":        "/etc/passwd\ndone\n",
			"uname -s":                                 "Linux\n",
			"timeout 0.1 sleep infinity; echo $?":      "124\n",
			"dmesg --version | cut -d' ' -f1":          "dmesg\n",
			"python -c 'print(6*7)'":                   "42\n",
			"python3 -c 'import ssl,http.server,json'": "",
			"awk 'BEGIN{print 1}'":                     "1\n",
		} {
			if got := runIn(t, root, uid, command); got != want {
				t.Errorf("as %d, %q prints %q, want %q", uid, command, got, want)
			}
		}
	}
}

func TestImageSaysWhatIsWrong(t *testing.T) {
	t.Run("no apt", func(t *testing.T) {
		t.Setenv("PATH", t.TempDir())
		_, err := Builder{Cache: t.TempDir()}.Image(t.Context())
		if err == nil || !strings.Contains(err.Error(), "can only be made on Debian") {
			t.Errorf("error is %v, want one that names the systems that work", err)
		}
	})
	t.Run("no place for the cache", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Builder{Cache: filepath.Join(file, "cache")}.Image(t.Context())
		if err == nil || !strings.Contains(err.Error(), "cannot use the cache folder") {
			t.Errorf("error is %v, want one that names the cache", err)
		}
	})
}

func needs(t *testing.T, programs ...string) {
	t.Helper()
	for _, program := range programs {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is missing: not a Debian", program)
		}
	}
}

func digest(t *testing.T, img v1.Image) string {
	t.Helper()
	hash, err := img.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return hash.String()
}

func walk(t *testing.T, layer v1.Layer, visit func(*tar.Header, string)) {
	t.Helper()
	content, err := layer.Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer content.Close() //nolint:errcheck // Read only.
	for in := tar.NewReader(content); ; {
		header, err := in.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		visit(header, string(body))
	}
}

// unpack makes a root folder of the image.
func unpack(t *testing.T, img v1.Image) string {
	t.Helper()
	root := t.TempDir()
	layers, err := img.Layers()
	if err != nil {
		t.Fatal(err)
	}
	content, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer content.Close() //nolint:errcheck // Read only.
	cmd := exec.CommandContext(t.Context(), "tar", "-x", "-p", "-C", root)
	cmd.Stdin = content
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("tar: %v: %s", err, out)
	}
	return root
}

// runIn runs a shell command in a root folder as a user that owns nothing there.
func runIn(t *testing.T, root string, uid uint32, command string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", command)
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8"}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Chroot:     root,
		Credential: &syscall.Credential{Uid: uid, Gid: uid},
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("as %d, %q failed: %v", uid, command, err)
	}
	return string(out)
}
