# METADATA
# description: Inputs for the tests of the rules.
package lib.fixtures

# METADATA
# description: A Sandbox with the given Pod spec; no rule of the library objects to sandbox(plain).
sandbox(spec) := {
	"kind": "Sandbox",
	"object": {"kind": "Sandbox", "spec": {"podTemplate": {"spec": spec}}},
	"pod": {"metadata": {}, "spec": spec},
	"pod_path": "spec.podTemplate",
	"parameters": {},
}

# METADATA
# description: The same with parameters of the rule.
configured(spec, parameters) := object.union(sandbox(spec), {"parameters": parameters})

plain := {
	"automountServiceAccountToken": false,
	"containers": [container],
}

container := {
	"name": "main",
	"image": "registry.example.com/team/agent:1.0",
	"resources": {"limits": {"cpu": "1", "memory": "1Gi"}},
}

# METADATA
# description: The plain spec with some fields of the Pod changed.
pod_with(fields) := object.union(plain, fields)

# METADATA
# description: The plain spec with one more container in a list, whose fields are given.
with_container(list, fields) := object.union(plain, {list: [object.union(container, fields)]})

# METADATA
# description: The plain spec with volumes.
with_volumes(volumes) := object.union(plain, {"volumes": volumes})

lists := ["containers", "initContainers", "ephemeralContainers"]

# METADATA
# description: Kinds whose Pod comes from another object, and the path of that Pod.
borrowed := {"SandboxWarmPool": "template.spec.podTemplate", "SandboxClaim": "template.spec.podTemplate"}

# METADATA
# description: The same Pod as it is judged for another kind.
as_kind(request, kind, path) := object.union(request, {"kind": kind, "pod_path": path})

# METADATA
# description: The fields of a set of findings.
fields(findings) := {finding.field | some finding in findings}

# METADATA
# description: What findings say to those who are shown them.
said(findings) := {object.remove(finding, ["content", "amount"]) | some finding in findings}
