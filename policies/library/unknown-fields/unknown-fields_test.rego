package policies.library.unknown_fields_test

import data.lib.fixtures
import data.policies.library.unknown_fields

request(spec) := fixtures.configured(spec, {"extraAllowed": ["reviewed"]})

test_denies_a_field_of_the_pod if {
	fixtures.said(unknown_fields.deny) == {{
		"message": "nobody has reviewed the field hostKernel",
		"field": "spec.podTemplate.spec.hostKernel",
		"value": "hostKernel",
	}} with input as request(fixtures.pod_with({"hostKernel": true}))
}

test_denies_a_field_of_the_context_of_the_pod if {
	spec := fixtures.pod_with({"securityContext": {"fsGroup": 1, "hostKernel": true}})
	fixtures.fields(unknown_fields.deny) == {"spec.podTemplate.spec.securityContext.hostKernel"} with input as request(spec)
}

test_denies_a_field_in_every_list[list] if {
	some list in fixtures.lists
	fixtures.fields(unknown_fields.deny) == {sprintf("spec.podTemplate.spec.%s[0].devices", [list])} with input as request({list: [{"name": "a", "devices": []}]})
}

test_denies_a_field_of_a_context_in_every_list[list] if {
	some list in fixtures.lists
	spec := {list: [{"securityContext": {"privileged": false, "devices": []}}]}
	fixtures.fields(unknown_fields.deny) == {sprintf("spec.podTemplate.spec.%s[0].securityContext.devices", [list])} with input as request(spec)
}

test_denies_without_parameters if {
	fixtures.fields(unknown_fields.deny) == {"spec.podTemplate.spec.reviewed"} with input as object.remove(request(fixtures.pod_with({"reviewed": 1})), ["parameters"])
}

test_denies_for_kinds_with_a_borrowed_pod[kind] if {
	some kind, path in fixtures.borrowed
	fixtures.fields(unknown_fields.deny) == {"template.spec.podTemplate.spec.hostKernel"} with input as fixtures.as_kind(request({"hostKernel": 1}), kind, path)
}

# Apart from those of the rule, so that one that is missing there is missed.
test_the_fields_of_a_pod_were_reviewed if {
	unknown_fields.of_pods == {"activeDeadlineSeconds", "affinity", "automountServiceAccountToken", "containers", "dnsConfig", "dnsPolicy", "enableServiceLinks", "ephemeralContainers", "evictionResponders", "hostAliases", "hostIPC", "hostNetwork", "hostPID", "hostUsers", "hostname", "hostnameOverride", "imagePullSecrets", "initContainers", "nodeName", "nodeSelector", "os", "overhead", "preemptionPolicy", "priority", "priorityClassName", "readinessGates", "resourceClaims", "resources", "restartPolicy", "runtimeClassName", "schedulerName", "schedulingGates", "schedulingGroup", "securityContext", "serviceAccount", "serviceAccountName", "setHostnameAsFQDN", "shareProcessNamespace", "subdomain", "terminationGracePeriodSeconds", "tolerations", "topologySpreadConstraints", "volumes"}
}

test_the_fields_of_containers_were_reviewed if {
	unknown_fields.of_containers == {"args", "command", "env", "envFrom", "image", "imagePullPolicy", "lifecycle", "livenessProbe", "name", "ports", "readinessProbe", "resizePolicy", "resources", "restartPolicy", "restartPolicyRules", "securityContext", "startupProbe", "stdin", "stdinOnce", "targetContainerName", "terminationMessagePath", "terminationMessagePolicy", "tty", "volumeDevices", "volumeMounts", "workingDir"}
}

test_the_fields_of_security_contexts_were_reviewed if {
	unknown_fields.of_contexts == {"allowPrivilegeEscalation", "appArmorProfile", "capabilities", "privileged", "procMount", "readOnlyRootFilesystem", "runAsGroup", "runAsNonRoot", "runAsUser", "seLinuxOptions", "seccompProfile", "windowsOptions"}
	unknown_fields.of_pod_contexts == {"appArmorProfile", "fsGroup", "fsGroupChangePolicy", "runAsGroup", "runAsNonRoot", "runAsUser", "seLinuxChangePolicy", "seLinuxOptions", "seccompProfile", "supplementalGroups", "supplementalGroupsPolicy", "sysctls", "windowsOptions"}
}

test_every_reviewed_field_is_allowed if {
	spec := object.union({name: 1 | some name in unknown_fields.of_pods}, {
		"securityContext": {name: 1 | some name in unknown_fields.of_pod_contexts},
		"containers": [object.union(
			{name: 1 | some name in unknown_fields.of_containers},
			{"securityContext": {name: 1 | some name in unknown_fields.of_contexts}},
		)],
		"initContainers": null,
		"ephemeralContainers": null,
	})
	count(unknown_fields.deny) == 0 with input as request(spec)
}

test_allows_what_the_environment_reviewed_and_null if {
	spec := fixtures.pod_with({"reviewed": 1, "hostKernel": null, "securityContext": {"a": null}, "initContainers": [{"b": null, "securityContext": {"c": null}}]})
	count(unknown_fields.deny) == 0 with input as request(spec)
}

test_allows_the_plain_sandbox if {
	count(unknown_fields.deny) == 0 with input as fixtures.sandbox(fixtures.plain)
}
