// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"
	"strconv"
	"strings"

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
	minor, err := strconv.Atoi(strings.TrimRight(version.Minor, "+"))
	return err == nil && minor >= relaxedServiceNamesMinor, nil
}
