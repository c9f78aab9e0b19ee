# METADATA
# title: RuntimeClasses of sandboxed runtimes
# description: >-
#   A RuntimeClass is a name that somebody gave to a handler of the node. One that is called gvisor and runs on runc
#   shares the kernel of the node. One that does not exist yet isolates nothing and runs nothing: the rule
#   runtimeclass-exists warns of it, and this one judges it once it does.
# related_resources:
#   - ref: https://kubernetes.io/docs/concepts/containers/runtime-class/
# custom:
#   id: runtimeclass-backed
#   code: SBX-003
#   category: isolation
#   severity: critical
#   enforcement: "Off"
#   remediation: Use a RuntimeClass whose handler is a sandboxed runtime.
#   kinds: [Sandbox, SandboxTemplate, SandboxWarmPool, SandboxClaim]
#   controls: ["C-0297"]
#   data: [runtimeclasses]
#   at_least_one: [allowedHandlers]
#   parameters:
#     allowedHandlers:
#       description: Handlers that isolate, as the node's runtime is configured.
#       type: array
#       items: {type: string, minLength: 1}
#       default: [runsc, gvisor, kata, kata-qemu, kata-clh, kata-fc, kata-dragonball, kata-qemu-snp, kata-qemu-tdx]
package policies.library.runtimeclass_backed

import data.lib.pods

deny contains finding if {
	value := pods.spec.runtimeClassName
	handler := data.inventory.runtimeclasses[value].handler
	not allowed(handler)
	finding := {
		"message": sprintf("RuntimeClass %q runs on the handler %q, which is not an allowed one", [value, handler]),
		"field": pods.field("runtimeClassName"),
		"value": value,
	}
}

# Apart from the rule: within it, absent parameters would leave the whole rule undefined.
allowed(handler) if handler in input.parameters.allowedHandlers
