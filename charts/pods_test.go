// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	podsecurity "k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

// pod is a Pod that some object of a release makes.
type pod struct {
	owner               string
	labels, annotations map[string]string
	spec                *corev1.PodSpec
	template            *corev1.PodTemplateSpec
}

// pods returns the Pods of every workload of a release, hooks included.
func pods(r rendered) []pod {
	var found []pod
	add := func(owner string, template *corev1.PodTemplateSpec) {
		found = append(found, pod{owner, template.Labels, template.Annotations, &template.Spec, template})
	}
	for _, d := range all[*appsv1.Deployment](r) {
		add("Deployment "+d.Name, &d.Spec.Template)
	}
	for _, j := range all[*batchv1.Job](r) {
		add("Job "+j.Name, &j.Spec.Template)
	}
	for _, p := range all[*corev1.Pod](r) {
		add("Pod "+p.Name, &corev1.PodTemplateSpec{ObjectMeta: p.ObjectMeta, Spec: p.Spec})
	}
	return found
}

func nested(o object, path ...string) string {
	text, _, _ := unstructured.NestedString(o.Object, path...)
	return text
}

// workloads fails if a workload of a kind that pods does not know is rendered.
func workloads(t *testing.T, r rendered) []pod {
	t.Helper()
	found := pods(r)
	if len(found) != 4 {
		t.Fatalf("%d workloads, want controller, webhook, clean-up and preflight", len(found))
	}
	for kind := range kinds(r) {
		if slices.Contains([]string{"DaemonSet", "StatefulSet", "CronJob", "ReplicaSet"}, kind) {
			t.Fatalf("the tests do not look into a %s", kind)
		}
	}
	return found
}

// Our own Pods run in a namespace that enforces the restricted profile, whatever user
// the cluster gives them.
func TestPodsAreRestricted(t *testing.T) {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	level := podsecurity.LevelVersion{Level: podsecurity.LevelRestricted, Version: podsecurity.LatestVersion()}
	for _, env := range environments {
		for _, p := range workloads(t, render(t, install{}.with(env))) {
			for _, result := range evaluator.EvaluatePod(level, &p.template.ObjectMeta, p.spec) {
				if !result.Allowed {
					t.Errorf("%s: %s: %s", p.owner, result.ForbiddenReason, result.ForbiddenDetail)
				}
			}
			checkContext(t, p)
		}
	}
}

func checkContext(t *testing.T, p pod) {
	t.Helper()
	for _, c := range p.spec.Containers {
		context, container := p.spec.SecurityContext, c.SecurityContext
		if context.RunAsUser != nil || context.RunAsGroup != nil || context.FSGroup != nil || container.RunAsUser != nil {
			t.Errorf("%s: %s fixes an id, which OpenShift refuses", p.owner, c.Name)
		}
		if container.ReadOnlyRootFilesystem == nil || !*container.ReadOnlyRootFilesystem {
			t.Errorf("%s: the root file system of %s can be written", p.owner, c.Name)
		}
		resources := c.Resources
		if resources.Requests.Cpu().IsZero() || resources.Requests.Memory().IsZero() || resources.Limits.Memory().IsZero() {
			t.Errorf("%s: the resources of %s are incomplete: %+v", p.owner, c.Name, resources)
		}
		if !resources.Limits.Cpu().IsZero() {
			t.Errorf("%s: a CPU limit of %s throttles admission", p.owner, c.Name)
		}
	}
}

// The webhook and the keeper of its socket meet in a folder of the Pod, which goes with the keeper.
func TestTheKeeperOfTheSocketIsWhereTheWebhookLooks(t *testing.T) {
	const where = "/var/run/agent-sandbox/socket"
	for enabled, want := range map[bool][]string{true: {"webhook", "socket"}, false: {"webhook"}} {
		r := render(t, install{set: []string{fmt.Sprintf("webhook.socketKeeper.enabled=%t", enabled)}})
		spec := named[*appsv1.Deployment](t, r, "agent-sandbox-webhook").Spec.Template.Spec
		shared := slices.ContainsFunc(spec.Volumes, func(v corev1.Volume) bool { return v.Name == "socket" && v.EmptyDir != nil })
		var got []string
		for _, c := range spec.Containers {
			got = append(got, c.Name)
			flags := slices.ContainsFunc(c.Args, func(arg string) bool { return strings.HasSuffix(arg, "="+where+"/keeper") })
			mount := slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == "socket" && m.MountPath == where })
			if flags != enabled || mount != enabled || shared != enabled {
				t.Errorf("enabled %t: container %s has the path: %t, and the folder: %t; the Pod has it: %t", enabled, c.Name, flags, mount, shared)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("enabled %t: containers (-want +got):\n%s", enabled, diff)
		}
	}
}

// Without it the garbage collector lets the memory grow until the kernel ends the process.
func TestTheGarbageCollectorKnowsTheMemoryLimit(t *testing.T) {
	for _, p := range workloads(t, render(t, install{})) {
		if !strings.HasPrefix(p.owner, "Deployment") {
			continue
		}
		c := p.spec.Containers[0]
		i := slices.IndexFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == "GOMEMLIMIT" })
		if i < 0 {
			t.Errorf("%s: GOMEMLIMIT is not set", p.owner)
			continue
		}
		source := &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{ContainerName: c.Name, Resource: "limits.memory"}}
		if diff := cmp.Diff(source, c.Env[i].ValueFrom); diff != "" {
			t.Errorf("%s: GOMEMLIMIT (-want +got):\n%s", p.owner, diff)
		}
	}
}

func TestPullSecretsReachEveryPod(t *testing.T) {
	cases := map[string]struct {
		set  []string
		want []string
	}{
		"none by default":        {nil, nil},
		"a global name":          {[]string{"global.imagePullSecrets={one}"}, []string{"one"}},
		"a global object":        {[]string{"global.imagePullSecrets[0].name=one"}, []string{"one"}},
		"ours beside the global": {[]string{"global.imagePullSecrets={one}", "image.pullSecrets[0].name=two", "image.pullSecrets[1]=one"}, []string{"one", "two"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for _, p := range workloads(t, render(t, install{set: tc.set})) {
				var got []string
				for _, s := range p.spec.ImagePullSecrets {
					got = append(got, s.Name)
				}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("%s: (-want +got):\n%s", p.owner, diff)
				}
			}
		})
	}
}

func TestImages(t *testing.T) {
	digest := "sha256:" + strings.Repeat("a", 64)
	cases := map[string]struct {
		set        []string
		controller string
		webhook    string
	}{
		"the defaults": {
			nil, "agent-sandbox-platform/agent-sandbox-controller:0.1.0", "agent-sandbox-platform/agent-sandbox-webhook:0.1.0",
		},
		"a registry for everything": {
			[]string{"global.imageRegistry=registry.example.com:5000/mirror", "image.registry=elsewhere"},
			"registry.example.com:5000/mirror/agent-sandbox-controller:0.1.0", "registry.example.com:5000/mirror/agent-sandbox-webhook:0.1.0",
		},
		"a registry with a slash at its end": {
			[]string{"image.registry=registry.example.com/"},
			"registry.example.com/agent-sandbox-controller:0.1.0", "registry.example.com/agent-sandbox-webhook:0.1.0",
		},
		"one tag for both": {
			[]string{"image.tag=v2", "image.registry="}, "agent-sandbox-controller:v2", "agent-sandbox-webhook:v2",
		},
		"a tag of its own": {
			[]string{"image.tag=v2", "webhook.image.tag=v3", "image.registry="}, "agent-sandbox-controller:v2", "agent-sandbox-webhook:v3",
		},
		"a digest": {
			[]string{"image.tag=v2", "controller.image.digest=" + digest, "image.registry="},
			"agent-sandbox-controller@" + digest, "agent-sandbox-webhook:v2",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for _, p := range workloads(t, render(t, install{set: tc.set})) {
				want := tc.webhook
				if strings.HasSuffix(p.owner, "controller") {
					want = tc.controller
				}
				for _, c := range slices.Concat(p.spec.InitContainers, p.spec.Containers) {
					if c.Image != want {
						t.Errorf("%s runs %s, want %s", p.owner, c.Image, want)
					}
				}
			}
		})
	}
}

// What must be text in Kubernetes is text, whatever YAML made of it.
func TestNumbersBecomeText(t *testing.T) {
	var set []string
	for _, component := range []string{"controller", "webhook"} {
		set = append(set, component+".podLabels.build=123", component+".podAnnotations.build=1e3", component+".nodeSelector.pool=7",
			component+".serviceAccount.annotations.role=42")
	}
	set = append(set, "commonLabels.team=1", "commonAnnotations.rev=true", "webhook.annotations.n=2", "metrics.serviceMonitor.labels.n=3",
		"crds.labels.n=4", "crds.annotations.n=5", "platform.router.podLabels.v=2", "platform.cluster.dns.podLabels.v=1")
	r := render(t, install{withCRDs: true, set: append(set, everything...)})
	for _, p := range workloads(t, r) {
		if !strings.HasPrefix(p.owner, "Deployment") {
			continue
		}
		if p.labels["build"] != "123" || p.annotations["build"] != "1e3" || p.spec.NodeSelector["pool"] != "7" {
			t.Errorf("%s: labels %v, annotations %v, nodeSelector %v", p.owner, p.labels, p.annotations, p.spec.NodeSelector)
		}
	}
	for _, o := range r.objects {
		checkText(t, o, "labels")
		checkText(t, o, "annotations")
	}
}

func checkText(t *testing.T, o object, field string) {
	t.Helper()
	entries, _, err := unstructured.NestedMap(o.Object, "metadata", field)
	if err != nil {
		t.Errorf("%s: %v", o, err)
	}
	for key, value := range entries {
		if _, ok := value.(string); !ok {
			t.Errorf("%s: %s %s is %T, want text", o, field, key, value)
		}
	}
}

func TestEnvironmentIsMergedByName(t *testing.T) {
	set := []string{
		"webhook.extraEnv[0].name=HTTPS_PROXY", "webhook.extraEnv[0].value=http://proxy",
		"webhook.extraEnv[1].name=POD_NAMESPACE", "webhook.extraEnv[1].value=other",
		"webhook.extraEnv[2].name=GOMEMLIMIT", "webhook.extraEnv[2].value=450MiB",
	}
	r := render(t, install{set: set})
	want := []corev1.EnvVar{{Name: "POD_NAMESPACE", Value: "other"}, {Name: "GOMEMLIMIT", Value: "450MiB"}, {Name: "HTTPS_PROXY", Value: "http://proxy"}}
	got := named[*appsv1.Deployment](t, r, "agent-sandbox-webhook").Spec.Template.Spec.Containers[0].Env
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
}

func TestSecurityContextIsMerged(t *testing.T) {
	r := render(t, install{set: []string{"controller.podSecurityContext.runAsUser=1000660000", "controller.securityContext.readOnlyRootFilesystem=false"}})
	spec := named[*appsv1.Deployment](t, r, "agent-sandbox-controller").Spec.Template.Spec
	if spec.SecurityContext.RunAsUser == nil || *spec.SecurityContext.RunAsUser != 1000660000 || !*spec.SecurityContext.RunAsNonRoot {
		t.Errorf("security context of the Pod: %+v", spec.SecurityContext)
	}
	if container := spec.Containers[0].SecurityContext; *container.ReadOnlyRootFilesystem || *container.AllowPrivilegeEscalation {
		t.Errorf("security context of the container: %+v", container)
	}
}

func TestConfigurationRollsPods(t *testing.T) {
	sums := func(set ...string) map[string]string {
		found := map[string]string{}
		for _, d := range all[*appsv1.Deployment](render(t, install{set: set})) {
			found[d.Name] = d.Spec.Template.Annotations["checksum/config"]
		}
		return found
	}
	before := sums()
	for name, sum := range sums("platform.environment.name=other") {
		if sum == before[name] || sum == "" {
			t.Errorf("%s is not restarted when the platform configuration changes", name)
		}
	}
	template := func(set ...string) map[string]corev1.PodTemplateSpec {
		found := map[string]corev1.PodTemplateSpec{}
		for _, d := range all[*appsv1.Deployment](render(t, install{set: set})) {
			found[d.Name] = d.Spec.Template
		}
		return found
	}
	if diff := cmp.Diff(template(), template("policies.rules.no-latest.enforcement=Deny")); diff != "" {
		t.Errorf("a policy restarts Pods, though it is read live:\n%s", diff)
	}
}
