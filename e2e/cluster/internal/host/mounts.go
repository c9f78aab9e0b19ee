// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Unmount unmounts all that is mounted in or below the folders, the latest
// mount first.
func Unmount(folders ...string) error {
	raw, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return fmt.Errorf("list mounts: %w", err)
	}
	var failed []error
	for _, point := range mountsBelow(string(raw), folders) {
		if err := unix.Unmount(point, unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) {
			failed = append(failed, fmt.Errorf("unmount %s: %w", point, err))
		}
	}
	return errors.Join(failed...)
}

// mountsBelow lists the mount points of a mountinfo table in or below the
// folders, the latest first.
func mountsBelow(table string, folders []string) []string {
	const pointField = 4
	unescape := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	var points []string
	for line := range strings.Lines(table) {
		fields := strings.Fields(line)
		if len(fields) <= pointField {
			continue
		}
		point := unescape.Replace(fields[pointField])
		if slices.ContainsFunc(folders, func(folder string) bool { return within(point, folder) }) {
			points = append(points, point)
		}
	}
	slices.Reverse(points)
	return points
}

func within(path, folder string) bool {
	return path == folder || strings.HasPrefix(path, strings.TrimSuffix(folder, "/")+"/")
}

// Remove deletes the folders, after making sure that nothing is mounted there:
// deleting through a mount would delete what belongs to somebody else.
func Remove(folders ...string) error {
	var failed []error
	for _, folder := range folders {
		failed = append(failed, removeTree(folder))
	}
	return errors.Join(failed...)
}

func removeTree(folder string) error {
	raw, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return fmt.Errorf("list mounts: %w", err)
	}
	if left := mountsBelow(string(raw), []string{folder}); len(left) > 0 {
		return fmt.Errorf("%s is not deleted, because something is still mounted at %s", folder, left[0])
	}
	if err := os.RemoveAll(folder); err != nil {
		return fmt.Errorf("delete %s: %w", folder, err)
	}
	return nil
}
