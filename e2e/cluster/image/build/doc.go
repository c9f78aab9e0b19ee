// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package build compiles programs of this repository and puts them into images.
//
// Decisions:
//
// 2026-11-29: The compiler's environment is fixed (no cgo, no GOFLAGS, the
// lowest instruction set of the architecture, no workspace), since each of
// these changes the binary and with it the image's digest.
//
// 2026-11-29: Without -version the version is `git describe`; a tree with
// changes says "-dirty", so that its image is never taken for the commit's.
package build
