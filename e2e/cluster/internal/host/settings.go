// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// changed are the kernel settings that the cluster needs ("" where a component
// sets what it needs by itself and only the old value has to be kept).
func changed() map[string]string {
	return map[string]string{
		"net.ipv4.ip_forward":                 "1",
		"net.ipv6.conf.all.forwarding":        "1",
		"net.bridge.bridge-nf-call-iptables":  "1",
		"net.bridge.bridge-nf-call-ip6tables": "1",
		"vm.overcommit_memory":                "",
		"vm.panic_on_oom":                     "",
		"kernel.panic":                        "",
		"kernel.panic_on_oops":                "",
		"kernel.keys.root_maxkeys":            "",
		"kernel.keys.root_maxbytes":           "",
	}
}

// borrowed are folders outside the cluster's own that its components insist on.
func borrowed() []string {
	return []string{"/var/lib/kubelet", "/var/lib/cni", "/var/log/containers", "/run/containerd"}
}

// shared are files and empty folders that tools leave behind and that others
// may use too; they go only when nothing is in them.
func shared() []string {
	return []string{"/run/xtables.lock", "/run/mount"}
}

// filterTables are the tables that the commands of iptables make when they are first
// used, by the command that lists them.
func filterTables() map[string]string {
	return map[string]string{"iptables-save": "ip filter", "ip6tables-save": "ip6 filter"}
}

// Saved is what the machine was like before the cluster.
type Saved struct {
	Settings map[string]string `json:"settings"`
	// Absent are the borrowed and shared paths that did not exist.
	Absent []string `json:"absent"`
	// NoFilterTables are the commands of iptables that nobody had used, as filterTables
	// names them.
	NoFilterTables []string `json:"noFilterTables"`
}

// Save writes down what the machine is like, unless an earlier run that was
// never undone has done so: its file then tells the truth and this one would not.
func Save(ctx context.Context, file string) error {
	if _, err := os.Stat(file); err == nil {
		return nil
	}
	saved := Saved{Settings: map[string]string{}}
	for save, table := range filterTables() {
		if _, err := command(ctx, "nft", append([]string{"list", "table"}, strings.Fields(table)...)...); err != nil {
			saved.NoFilterTables = append(saved.NoFilterTables, save)
		}
	}
	for name := range changed() {
		if value, err := os.ReadFile(settingFile(name)); err == nil {
			saved.Settings[name] = strings.TrimSpace(string(value))
		}
	}
	for _, path := range append(borrowed(), shared()...) {
		if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
			saved.Absent = append(saved.Absent, path)
		}
	}
	raw, err := json.Marshal(saved)
	if err != nil {
		return fmt.Errorf("save kernel settings: %w", err)
	}
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		return fmt.Errorf("save kernel settings: %w", err)
	}
	return nil
}

// Apply sets the kernel settings that the cluster needs.
func Apply() error {
	for name, value := range changed() {
		if value == "" {
			continue
		}
		if err := os.WriteFile(settingFile(name), []byte(value), 0o600); err != nil {
			return fmt.Errorf("kernel setting %s: %w", name, err)
		}
	}
	return nil
}

// Restore gives the machine back its settings and removes the borrowed folders
// that it did not have. Without the file there is nothing to restore.
func Restore(ctx context.Context, file string) error {
	raw, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("restore kernel settings: %w", err)
	}
	var saved Saved
	if err := json.Unmarshal(raw, &saved); err != nil {
		return fmt.Errorf("restore kernel settings from %s: %w", file, err)
	}
	var failed []error
	for name, value := range saved.Settings {
		if current, err := os.ReadFile(settingFile(name)); err == nil && strings.TrimSpace(string(current)) == value {
			continue
		}
		if err := os.WriteFile(settingFile(name), []byte(value), 0o600); err != nil {
			failed = append(failed, fmt.Errorf("kernel setting %s: %w", name, err))
		}
	}
	for _, path := range saved.Absent {
		if slices.Contains(borrowed(), path) {
			failed = append(failed, removeTree(path))
		} else {
			_ = os.Remove(path)
		}
	}
	for _, save := range saved.NoFilterTables {
		removeUnusedFilter(ctx, save)
	}
	return errors.Join(failed...)
}

// removeUnusedFilter removes the table of a command of iptables unless somebody has put
// a rule or chain there meanwhile.
func removeUnusedFilter(ctx context.Context, save string) {
	rules, err := command(ctx, save, "-t", "filter")
	if table := filterTables()[save]; err == nil && !hasRules(rules) && table != "" {
		try(ctx, "nft delete table "+table)
	}
}

// hasRules tells whether the output of iptables-save for the filter table has
// more than the three chains, all of them accepting, that are always there.
func hasRules(saved string) bool {
	for line := range strings.Lines(saved) {
		builtin := strings.HasPrefix(line, ":") && strings.Contains(line, " ACCEPT ")
		if strings.HasPrefix(line, "-") || strings.HasPrefix(line, ":") && !builtin {
			return true
		}
	}
	return false
}

func settingFile(name string) string {
	return filepath.Join("/proc/sys", strings.ReplaceAll(name, ".", "/"))
}
