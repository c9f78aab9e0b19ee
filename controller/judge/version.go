// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"
	"strconv"
	"strings"

	apimachineryversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"
)

// relaxedServiceNamesMinor is the minor version of Kubernetes from which on the name
// of a Service may begin with a digit.
const relaxedServiceNamesMinor = 36

// RelaxedServiceNames asks the apiserver whether its Services may have names that begin
// with a digit.
func RelaxedServiceNames(apiserver discovery.ServerVersionInterface) (bool, error) {
	version, err := apiserver.ServerVersion()
	if err != nil {
		return false, fmt.Errorf("ask the apiserver for its version: %w", err)
	}
	return minorOf(version) >= relaxedServiceNamesMinor, nil
}

// minorOf is the minor version of Kubernetes 1. Providers add to it what they like, as in
// "36+", and some name it in the whole version only; one that nobody can read is old.
func minorOf(version *apimachineryversion.Info) int {
	written := version.Minor
	if !startsWithDigit(written) {
		_, after, _ := strings.Cut(version.GitVersion, ".")
		written = after
	}
	end := strings.IndexFunc(written, func(letter rune) bool { return letter < '0' || letter > '9' })
	if end >= 0 {
		written = written[:end]
	}
	minor, err := strconv.Atoi(written)
	if err != nil {
		return 0
	}
	return minor
}

func startsWithDigit(text string) bool {
	return text != "" && text[0] >= '0' && text[0] <= '9'
}
