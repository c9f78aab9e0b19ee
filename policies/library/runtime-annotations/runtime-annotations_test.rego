package policies.library.runtime_annotations_test

import data.lib.fixtures
import data.policies.library.runtime_annotations

template(values) := object.union(fixtures.configured(fixtures.plain, {"allowed": ["dev.gvisor.spec.mount.a.share"]}), {"pod": {"metadata": {"annotations": values}}})

test_denies[key] if {
	some key in [
		"dev.gvisor.flag.debug", "io.katacontainers.config.hypervisor.path", "io.kubernetes.cri-o.userns-mode", "io.kubernetes.cri.untrusted-workload", "io.containerd.runc.v2.group",
		"org.systemd.property.DeviceAllow", "run.oci.handler", "krun.cpus", "cpu-quota.crio.io", "seccomp-profile.kubernetes.cri-o.io/POD",
	]
	runtime_annotations.deny == {{
		"message": sprintf("the annotation %s steers the container runtime", [key]),
		"field": sprintf("spec.podTemplate.metadata.annotations[%s]", [key]),
		"value": "x",
	}} with input as template({key: "x", "example.com/a": "y"})
}

test_denies_a_claim if {
	fixtures.fields(runtime_annotations.deny) == {"spec.additionalPodMetadata.annotations[dev.gvisor.a]"} with input as {"object": {"spec": {"additionalPodMetadata": {"annotations": {"dev.gvisor.a": "x"}}}}}
}

test_denies_without_parameters if {
	count(runtime_annotations.deny) == 1 with input as object.remove(template({"dev.gvisor.spec.mount.a.share": "x"}), ["parameters"])
}

test_allows[note] if {
	some note, values in {"listed": {"dev.gvisor.spec.mount.a.share": "x"}, "in the middle": {"my.dev.gvisor.a": "x"}, "like one": {"mycrio.io/a": "x"}, "after the slash": {"example.com/crio.io": "x"}, "empty": {}, "null": null}
	count(runtime_annotations.deny) == 0 with input as template(values)
}

test_allows_by_a_pattern[note] if {
	some note, case in {"between dots": ["dev.gvisor.spec.mount.data.share", 0], "more dots": ["dev.gvisor.spec.mount.data.x.share", 1], "another end": ["dev.gvisor.spec.mount.data.type", 1]}
	given := object.union(template({case[0]: "x"}), {"parameters": {"allowed": ["dev.gvisor.spec.mount.*.share"]}})
	count(runtime_annotations.deny) == case[1] with input as given
}
