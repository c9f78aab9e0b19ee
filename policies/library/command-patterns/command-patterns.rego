# METADATA
# title: Commands that look like an attack
# description: >-
#   A hint, easily evaded, and therefore never more than a warning. Commands, arguments, hooks and probes are looked at;
#   findings name the pattern and never show the command.
# related_resources:
#   - ref: https://kubernetes.io/docs/tasks/inject-data-application/define-command-argument-container/
# custom:
#   id: command-patterns
#   code: SBX-046
#   category: isolation
#   severity: low
#   enforcement: "Off"
#   remediation: Build what the command does into the image, or leave it out.
#   kinds: [Sandbox, SandboxTemplate, SandboxWarmPool, SandboxClaim]
#   controls: [none]
#   at_least_one: [patterns]
#   parameters:
#     patterns:
#       description: What to look for, as a regular expression of RE2, by a name for the finding.
#       type: object
#       additionalProperties: {type: string, format: regex, minLength: 1}
#       default:
#         a download that is run: "\\b(curl|wget)\\b[^|]*\\|\\s*(sudo\\s+)?(ba|da|z|k)?sh\\b"
#         a reverse shell: "/dev/(tcp|udp)/|\\bn(c|cat|etcat)\\b[^|;&]*\\s-[a-z]*[ce]\\b|\\bbash\\s+-i\\b"
#         a way to the node: "\\b(nsenter|unshare|chroot|insmod|modprobe)\\b|/proc/(1|sys/kernel/core_pattern)\\b|release_agent"
#         a miner: "\\b(xmrig|minerd|cpuminer)\\b|stratum\\+(tcp|ssl)://"
package policies.library.command_patterns

import data.lib.containers
import data.lib.values

warn contains finding if {
	some path, fields in texts
	some field, text in fields
	some name, pattern in input.parameters.patterns
	regex.match(pattern, text)
	finding := {
		"message": sprintf("what %s runs looks like %s", [containers.label(containers.by_path[path]), name]),
		"field": sprintf("%s.%s", [path, field]),
		"value": name,
		"content": text,
	}
}

# A command and its arguments are one text: a shell often stands in the one and its script in the other.
texts[path].command := concat(" ", words) if {
	some path, container in containers.by_path
	words := [values.text(word) | some list in ["command", "args"]; some word in container[list]]
	count(words) > 0
}

texts[path][field] := text_of(command) if {
	some path, container in containers.by_path
	some name in ["postStart", "preStop"]
	command := container.lifecycle[name].exec.command
	field := sprintf("lifecycle.%s.exec.command", [name])
}

texts[path][field] := text_of(command) if {
	some path, container in containers.by_path
	some name in ["livenessProbe", "readinessProbe", "startupProbe"]
	command := container[name].exec.command
	field := sprintf("%s.exec.command", [name])
}

text_of(command) := concat(" ", [values.text(word) | some word in command])
