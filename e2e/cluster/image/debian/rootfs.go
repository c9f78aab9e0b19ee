// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package debian

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/agent-sandbox-platform/agent-sandbox/e2e/cluster/image"
)

const (
	permissions = 0o777
	sticky      = 0o1000

	//nolint:gosec // User names, no passwords.
	passwd = `root:x:0:0:root:/root:/bin/bash
nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin
nonroot:x:65532:65532:nonroot:/:/bin/sh
`
	group = `root:x:0:
nogroup:x:65534:
nonroot:x:65532:
`
)

// mergedFolders are the folders of the root that live in /usr.
var mergedFolders = []string{"bin", "sbin", "lib", "lib32", "lib64", "libx32"}

// leftOut are folders whose content no program needs.
var leftOut = []string{
	"/usr/share/bash-completion/", "/usr/share/bug/", "/usr/share/doc-base/", "/usr/share/info/",
	"/usr/share/lintian/", "/usr/share/locale/", "/usr/share/man/", "/usr/share/menu/",
}

// rootfs returns the content of the packages as one file system.
func rootfs(ctx context.Context, archives []string) (*image.Tree, error) {
	tree := &image.Tree{}
	for _, archive := range archives {
		content, err := run(ctx, "dpkg-deb", "--fsys-tarfile", archive)
		if err != nil {
			return nil, fmt.Errorf("unpack %s: %w", path.Base(archive), err)
		}
		if err := addTar(tree, strings.NewReader(content)); err != nil {
			return nil, fmt.Errorf("unpack %s: %w", path.Base(archive), err)
		}
	}
	return tree, addSetup(tree)
}

// addSetup adds what the packages' scripts would have made.
func addSetup(tree *image.Tree) error {
	problems := []error{
		tree.AddFile("/etc/passwd", 0o644, []byte(passwd)),
		tree.AddFile("/etc/group", 0o644, []byte(group)),
		tree.AddFile("/etc/nsswitch.conf", 0o644, []byte("hosts: files dns\n")),
		tree.AddDir("/root", 0o700),
		tree.AddDir("/tmp", 0o1777),
		tree.AddDir("/usr/local/bin", 0o755),
		tree.AddSymlink("/usr/bin/python", "python3"),
		tree.AddSymlink("/usr/bin/awk", "mawk"),
	}
	for _, folder := range mergedFolders {
		if tree.Has("/usr/" + folder) {
			problems = append(problems, tree.AddSymlink("/"+folder, "usr/"+folder))
		}
	}
	return errors.Join(problems...)
}

func addTar(tree *image.Tree, content io.Reader) error {
	in := tar.NewReader(content)
	for {
		header, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the archive: %w", err)
		}
		name := place(header.Name)
		if name == "/" || omitted(name) {
			continue
		}
		if err := addEntry(tree, name, header, in); err != nil {
			return err
		}
	}
}

func addEntry(tree *image.Tree, name string, header *tar.Header, content io.Reader) error {
	mode := header.Mode & permissions
	switch header.Typeflag {
	case tar.TypeDir:
		return tree.AddDir(name, header.Mode&(permissions|sticky))
	case tar.TypeReg:
		var body bytes.Buffer
		if _, err := io.Copy(&body, content); err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		return tree.AddFile(name, mode, body.Bytes())
	case tar.TypeSymlink:
		return tree.AddSymlink(name, header.Linkname)
	case tar.TypeLink:
		return tree.AddCopy(name, place(header.Linkname))
	default:
		return fmt.Errorf("%s is neither file, folder nor link", name)
	}
}

// place returns where an entry of a package goes in a system whose /usr is
// merged.
func place(entry string) string {
	name := path.Clean("/" + entry)
	for _, folder := range mergedFolders {
		if name == "/"+folder || strings.HasPrefix(name, "/"+folder+"/") {
			return "/usr" + name
		}
	}
	return name
}

func omitted(name string) bool {
	for _, folder := range leftOut {
		if strings.HasPrefix(name+"/", folder) {
			return true
		}
	}
	documentation := strings.HasPrefix(name, "/usr/share/doc/")
	return documentation && path.Base(name) != "copyright"
}
