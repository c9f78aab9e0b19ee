// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package debian makes an image with a shell, the usual small tools and Python
// from Debian packages, for test clusters that reach no image registry.
//
// Decisions:
//
// 2026-11-29: apt resolves the packages against an empty installation, so the
// list is complete whatever this machine has. Considered: mmdebstrap and
// debootstrap; both must be installed first, and both need a root file system
// with devices where the content of the packages is enough.
//
// 2026-11-29: The packages' files go from their archives straight into the
// image's layer; nothing is unpacked on this machine. Maintainer scripts do not
// run. What they would have made is added by hand: users, the merged /usr,
// /root, the python and awk links.
//
// 2026-11-29: The layer is cached under the names and versions of its packages.
// A security update makes a new one; otherwise nothing is downloaded. When the
// machine's package lists are missing or too old to download from, lists of our
// own are fetched into the cache, so that no root is needed and the machine
// stays as it is.
//
// 2026-11-29: Set-user-ID bits are dropped and manuals, locales and other
// documentation left out. Licences stay.
package debian
