// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package image makes container images without a container engine: static
// binaries become an OCI image, which goes into an archive for containerd or
// to a registry.
//
// An image is described by a [Spec] and made by [FromBinaries]. Its content
// depends on the bytes of the files and on the Spec alone: entries are sorted,
// owned by 0:0, dated with Spec.Created and given modes that do not come from
// the machine. The same commit therefore has the same digest everywhere.
//
// Decisions:
//
// 2026-11-29: An archive is an OCI layout that carries a docker-archive index
// (manifest.json) over the same blobs. containerd prefers the layout, so the
// digest in the node is the digest that was printed; other loaders find the
// index they know. Considered: a pure docker-archive; containerd then writes a
// manifest of its own, and the digests differ.
//
// 2026-11-29: The name in an archive is the complete one that the kubelet's
// runtime looks up ([Canonical]), not the short one of a manifest: an import
// takes it as written, and a Pod with imagePullPolicy IfNotPresent would miss
// the image otherwise.
//
// 2026-11-29: Without SOURCE_DATE_EPOCH every date is the Unix epoch, not the
// commit's time: a commit that does not change a binary's content or version
// then changes no digest, and no git is needed to build.
//
// 2026-11-29: A file is executable when its content says so (ELF or "#!"), not
// by the mode on the host, which depends on a umask. A binary for another
// architecture, or one that needs a dynamic loader, is refused here, where the
// cause can still be named; in a cluster both end in "exec format error" or "no
// such file or directory".
//
// 2026-11-29: Every image made from binaries has /etc/passwd and /etc/group
// with root and nonroot (65532), and a /tmp with mode 1777; under a read-only
// root /tmp is the place to mount an emptyDir on. The user of an image is
// numeric, since the kubelet cannot check runAsNonRoot against a name. There
// are no CA certificates: the programs speak to the apiserver, whose CA is
// mounted.
//
// 2026-11-29: A push of more than one architecture is an OCI index; a push of
// one is the bare image. Plain HTTP is used for registries on this machine and
// in private address ranges only, which is the rule of the registry library.
package image
