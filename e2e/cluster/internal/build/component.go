// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package build compiles the programs of the cluster from their modules and
// keeps them in the user's cache folder, so that each is built once.
package build

import "strings"

// Versions of what is built, stamped into the binaries that report one.
const (
	KubernetesVersion = "v1.37.2"
	ContainerdVersion = "v2.4.2"
)

// Component is a module under components/ and the programs it builds.
type Component struct {
	// Name is the folder of the module under components/.
	Name string
	// Programs are the binaries, by file name, and the package of each.
	Programs []Program
	// Tags, LDFlags and CGO are given to the go command.
	Tags    []string
	LDFlags []string
	CGO     bool
	// Note tells how long a first build takes where that is worth saying.
	Note string
}

// Program is one binary.
type Program struct {
	// File is its name; Package the import path or "." for the module's own.
	File, Package string
	// Aliases are further names under which the binary is called: one that
	// picks what to run by its own name.
	Aliases []string
}

// Components are the modules of all that a cluster runs, the slowest last so that whatever is wrong
// with the machine's compiler shows early.
func Components() []Component {
	strip := []string{"-s", "-w"}
	return []Component{
		{Name: "node", LDFlags: strip, Programs: []Program{
			{File: "pause", Package: "./cmd/pause"}, {File: "world", Package: "./cmd/world"},
		}},
		{
			Name: "runc", CGO: true, Tags: []string{"seccomp", "netgo", "osusergo"},
			LDFlags:  append([]string{"-extldflags", "-static"}, strip...),
			Programs: []Program{{File: "runc", Package: "github.com/opencontainers/runc"}},
		},
		{Name: "cni", LDFlags: strip, Programs: cniPrograms()},
		{Name: "etcd", LDFlags: strip, Programs: []Program{{File: "etcd", Package: "go.etcd.io/etcd/server/v3"}}},
		{
			Name: "containerd", LDFlags: append(stamp("github.com/containerd/containerd/v2/version.Version="+ContainerdVersion), strip...),
			Tags: []string{"no_btrfs", "no_devmapper", "no_zfs"}, Programs: containerdPrograms(),
		},
		{Name: "network", LDFlags: strip, Programs: []Program{
			{File: "kube-network-policies", Package: "sigs.k8s.io/kube-network-policies/cmd"},
		}},
		{Name: "dns", LDFlags: strip, Programs: []Program{{File: "coredns", Package: "."}}},
		{Name: "storage", LDFlags: strip, Programs: []Program{{File: "storage-provisioner", Package: "."}}},
		{Name: "gvisor", LDFlags: strip, Note: "about 2 minutes the first time", Programs: []Program{
			{File: "runsc", Package: "gvisor.dev/gvisor/runsc"}, {File: "containerd-shim-runsc-v1", Package: "."},
		}},
		{
			Name: "kubernetes", LDFlags: append(kubernetesStamps(), strip...), Note: "about 10 minutes the first time",
			Programs: []Program{{File: "kubernetes", Package: ".", Aliases: []string{
				"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy", "kubelet", "kubectl",
			}}},
		},
	}
}

// Extras are the modules of programs that no start of a cluster needs, built when one is
// asked for: those that stand in for nodes where many are wanted, and cert-manager.
func Extras() []Component {
	strip := []string{"-s", "-w"}
	return []Component{
		{Name: "kwok", LDFlags: strip, Programs: []Program{{File: "kwok", Package: "sigs.k8s.io/kwok/cmd/kwok"}}},
		{Name: "cert-manager", LDFlags: strip, Programs: []Program{{File: "cert-manager", Package: "."}}},
	}
}

func cniPrograms() []Program {
	var programs []Program
	for _, path := range []string{"main/bridge", "main/loopback", "ipam/host-local", "meta/portmap"} {
		file := path[strings.LastIndex(path, "/")+1:]
		programs = append(programs, Program{File: file, Package: "github.com/containernetworking/plugins/plugins/" + path})
	}
	return programs
}

func containerdPrograms() []Program {
	var programs []Program
	for _, file := range []string{"containerd", "containerd-shim-runc-v2", "ctr"} {
		programs = append(programs, Program{File: file, Package: "github.com/containerd/containerd/v2/cmd/" + file})
	}
	return programs
}

// kubernetesStamps set the version that servers and kubectl report: unstamped
// they say v0.0.0-master, which kubectl and Helm refuse to parse.
func kubernetesStamps() []string {
	var stamps []string
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		stamps = append(stamps, stamp(
			pkg+".gitVersion="+KubernetesVersion, pkg+".gitMajor=1", pkg+".gitMinor=37", pkg+".gitTreeState=clean")...)
	}
	return stamps
}

func stamp(assignments ...string) []string {
	var flags []string
	for _, a := range assignments {
		flags = append(flags, "-X", a)
	}
	return flags
}
