// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package precheck

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// tools are the programs looked for and the Debian package of each.
func tools() map[string]string {
	return map[string]string{
		"gcc": "gcc", "pkg-config": "pkg-config", "ip": "iproute2", "iptables": "iptables", "nft": "nftables",
		"conntrack": "conntrack", "modprobe": "kmod", "nsenter": "util-linux",
	}
}

// sbin holds most of the tools and is not on every user's PATH.
var sbin = []string{"/usr/local/sbin", "/usr/sbin", "/sbin"}

// Gather looks at this machine; ports are the ports of interest.
func Gather(ctx context.Context, ports map[int]string) (Facts, error) {
	f := Facts{UID: os.Geteuid(), NodeIP: nodeIP(ctx)}
	if f.UID != 0 {
		return f, nil
	}
	f.Missing = missingPackages()
	if len(f.Missing) > 0 {
		return f, nil
	}
	var err error
	if f.Cgroups, err = cgroups(); err != nil {
		return f, err
	}
	f.BridgeFilter = bridgeFilter(ctx)
	_, noIPv6 := os.Stat("/proc/sys/net/ipv6")
	f.IPv6 = noIPv6 == nil
	f.PortUsers, err = portUsers(ports)
	return f, err
}

func missingPackages() []string {
	var missing []string
	for tool, pkg := range tools() {
		if !found(tool) {
			missing = append(missing, pkg)
		}
	}
	// runc links these two statically, and neither is a program.
	for pkg, file := range map[string]string{"libseccomp-dev": "libseccomp.a", "libc6-dev": "libc.a"} {
		if matches, _ := filepath.Glob("/usr/lib/*/" + file); len(matches) == 0 {
			missing = append(missing, pkg)
		}
	}
	return missing
}

func found(tool string) bool {
	if _, err := exec.LookPath(tool); err == nil {
		return true
	}
	return slices.ContainsFunc(sbin, func(dir string) bool {
		_, err := os.Stat(filepath.Join(dir, tool))
		return err == nil
	})
}

// cgroups lists the controllers that the kernel has switched on, in version 1
// and version 2 alike.
func cgroups() ([]string, error) {
	raw, err := os.ReadFile("/proc/cgroups")
	if err != nil {
		return nil, fmt.Errorf("cgroup controllers: %w", err)
	}
	var names []string
	for line := range strings.Lines(string(raw)) {
		fields := strings.Fields(line)
		if len(fields) == 4 && fields[3] == "1" {
			names = append(names, fields[0])
		}
	}
	return names, nil
}

func bridgeFilter(ctx context.Context) bool {
	const setting = "/proc/sys/net/bridge/bridge-nf-call-iptables"
	if _, err := os.Stat(setting); err == nil {
		return true
	}
	_ = exec.CommandContext(ctx, "modprobe", "br_netfilter").Run()
	_, err := os.Stat(setting)
	return err == nil
}

// nodeIP is the address that packets to the outside leave from; without a
// route there, the first address that is not the loopback's.
func nodeIP(ctx context.Context) string {
	if conn, err := (&net.Dialer{}).DialContext(ctx, "udp4", "203.0.113.1:9"); err == nil {
		defer func() { _ = conn.Close() }()
		if addr, ok := conn.LocalAddr().(*net.UDPAddr); ok {
			return addr.IP.String()
		}
	}
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return ""
	}
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && n.IP.IsGlobalUnicast() {
			return n.IP.String()
		}
	}
	return ""
}

func portUsers(ports map[int]string) (map[int]string, error) {
	inodes := map[int]string{}
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		raw, err := os.ReadFile(table)
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("ports in use: %w", err)
		}
		for port, inode := range listening(string(raw)) {
			if _, needed := ports[port]; needed {
				inodes[port] = inode
			}
		}
	}
	users := map[int]string{}
	for port, inode := range inodes {
		users[port] = owner(inode)
	}
	return users, nil
}

// listening reads a table like /proc/net/tcp: port to inode of each socket in
// the state LISTEN.
func listening(table string) map[int]string {
	const local, state, inode, listen = 1, 3, 9, "0A"
	ports := map[int]string{}
	scanner := bufio.NewScanner(strings.NewReader(table))
	for scanner.Scan() {
		fields := strings.Fields(scanner.Text())
		if len(fields) <= inode || fields[state] != listen {
			continue
		}
		_, hex, _ := strings.Cut(fields[local], ":")
		if port, err := strconv.ParseUint(hex, 16, 16); err == nil {
			ports[int(port)] = fields[inode]
		}
	}
	return ports
}

// owner names the process that holds a socket, "" when none is found.
func owner(inode string) string {
	descriptors, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, fd := range descriptors {
		if target, err := os.Readlink(fd); err != nil || target != "socket:["+inode+"]" {
			continue
		}
		process := filepath.Dir(filepath.Dir(fd))
		name, err := os.ReadFile(filepath.Join(process, "comm"))
		if err != nil {
			return ""
		}
		return fmt.Sprintf("%s (pid %s)", strings.TrimSpace(string(name)), filepath.Base(process))
	}
	return ""
}
