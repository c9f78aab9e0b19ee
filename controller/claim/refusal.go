// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/blueprint"
)

const (
	pathEnv     = "spec.env"
	pathVolumes = "spec.volumeClaimTemplates"
	pathLabels  = "spec.additionalPodMetadata.labels"

	envRejected = "environment variable injection rejected: "
)

// inWordsOfContract turns what the template does not take of a claim into the reason
// and the words that clients know. Other errors stay as they are.
func inWordsOfContract(claim *extensionsv1beta1.SandboxClaim, template *extensionsv1beta1.SandboxTemplate, err error) error {
	var refused *blueprint.RefusalError
	if !errors.As(err, &refused) || len(refused.Errors) == 0 {
		return err
	}
	first := refused.Errors[0]
	switch {
	case strings.HasPrefix(first.Field, pathEnv):
		return ofEnvironment(claim, first)
	case strings.HasPrefix(first.Field, pathVolumes):
		return refuse(ReasonVolumeClaimTemplatesError, "%w", first)
	case first.Type == field.ErrorTypeForbidden:
		return refuse(ReasonInvalidMetadata, "%w", first)
	default:
		return ofMetadata(template, first)
	}
}

func ofEnvironment(claim *extensionsv1beta1.SandboxClaim, refused *field.Error) error {
	switch {
	case refused.Field == pathEnv:
		return refuse(ReasonEnvVarsInjectionRejected, envRejected+"environment variable injection is not allowed by the template policy")
	case refused.Type == field.ErrorTypeForbidden:
		return refuse(ReasonEnvVarsInjectionRejected, envRejected+"%s", refused.Detail)
	case refused.Type == field.ErrorTypeNotSupported:
		return refuse(ReasonReconcilerError, "target container %q not found in template for environment variable %q",
			fmt.Sprint(refused.BadValue), variableAt(claim, refused.Field))
	default:
		return refuse(ReasonReconcilerError, "environment variable %q is defined in the template and cannot be overridden by its policy",
			variableAt(claim, refused.Field))
	}
}

// variableAt is the name of the variable to which a path such as
// spec.env[2].containerName leads.
func variableAt(claim *extensionsv1beta1.SandboxClaim, path string) string {
	var index int
	if _, err := fmt.Sscanf(path, pathEnv+"[%d]", &index); err != nil || index >= len(claim.Spec.Env) {
		return ""
	}
	return claim.Spec.Env[index].Name
}

func ofMetadata(template *extensionsv1beta1.SandboxTemplate, refused *field.Error) error {
	form, present := "annotation", template.Spec.PodTemplate.ObjectMeta.Annotations
	if strings.HasPrefix(refused.Field, pathLabels) {
		form, present = "label", template.Spec.PodTemplate.ObjectMeta.Labels
	}
	_, key, _ := strings.Cut(strings.TrimSuffix(refused.Field, "]"), "[")
	return refuse(ReasonReconcilerError, "metadata override conflict: %s %q is defined in template with value %q, but claim requests %q",
		form, key, present[key], fmt.Sprint(refused.BadValue))
}
