// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
)

// elsewhere is a release under names that nothing can have guessed.
var elsewhere = install{release: "q7-blue", namespace: "tools-west"}

// Whatever one object says of another is true under any name.
func TestReferencesMeet(t *testing.T) {
	cases := map[string][]string{
		"the defaults":                   {"metrics.enabled=true"},
		"everything on":                  everything,
		"a name of one's own":            {"fullnameOverride=sandboxes"},
		"service accounts of one's own":  {"controller.serviceAccount.name=robot", "webhook.serviceAccount.name=guard"},
		"labels that try to take over":   {`controller.podLabels.app\.kubernetes\.io/component=other`, "webhook.podLabels.app=other"},
		"common labels that try as well": {`commonLabels.app\.kubernetes\.io/instance=other`, "commonLabels.app=other"},
	}
	for name, set := range cases {
		t.Run(name, func(t *testing.T) {
			in := elsewhere
			in.set = set
			r := render(t, in)
			checkRoles(t, r)
			checkSelectors(t, r)
			checkWebhookServices(t, r)
			for _, pod := range pods(r) {
				checkPodReferences(t, r, pod)
			}
			for _, hpa := range all[*autoscalingv2.HorizontalPodAutoscaler](r) {
				named[*appsv1.Deployment](t, r, hpa.Spec.ScaleTargetRef.Name)
			}
		})
	}
}

func checkRoles(t *testing.T, r rendered) {
	t.Helper()
	check := func(subjects []rbacv1.Subject) {
		for _, subject := range subjects {
			if subject.Namespace != r.Namespace {
				t.Errorf("a subject is in namespace %q, want %q", subject.Namespace, r.Namespace)
			}
			named[*corev1.ServiceAccount](t, r, subject.Name)
		}
		if len(subjects) == 0 {
			t.Error("a binding has no subject")
		}
	}
	for _, b := range all[*rbacv1.ClusterRoleBinding](r) {
		named[*rbacv1.ClusterRole](t, r, b.RoleRef.Name)
		check(b.Subjects)
	}
	for _, b := range all[*rbacv1.RoleBinding](r) {
		named[*rbacv1.Role](t, r, b.RoleRef.Name)
		check(b.Subjects)
	}
}

// checkSelectors wants each selector to select the Pods of exactly one workload.
func checkSelectors(t *testing.T, r rendered) {
	t.Helper()
	check := func(who string, selector labels.Selector) string {
		var selected []string
		for _, pod := range pods(r) {
			if selector.Matches(labels.Set(pod.labels)) {
				selected = append(selected, pod.owner)
			}
		}
		if len(selected) != 1 {
			t.Errorf("%s selects the Pods of %v, want those of one", who, selected)
			return ""
		}
		return selected[0]
	}
	for _, s := range all[*corev1.Service](r) {
		check("Service "+s.Name, labels.SelectorFromSet(s.Spec.Selector))
	}
	for _, d := range all[*appsv1.Deployment](r) {
		check("Deployment "+d.Name, selectorOf(t, d.Spec.Selector))
		for _, c := range d.Spec.Template.Spec.TopologySpreadConstraints {
			check("spread of "+d.Name, selectorOf(t, c.LabelSelector))
		}
	}
	for _, p := range all[*policyv1.PodDisruptionBudget](r) {
		if owner := check("PodDisruptionBudget "+p.Name, selectorOf(t, p.Spec.Selector)); owner != "Deployment "+p.Name {
			t.Errorf("PodDisruptionBudget %s is for %s", p.Name, owner)
		}
	}
	for _, p := range all[*networkingv1.NetworkPolicy](r) {
		if owner := check("NetworkPolicy "+p.Name, selectorOf(t, &p.Spec.PodSelector)); !strings.HasSuffix(owner, " "+p.Name) {
			t.Errorf("NetworkPolicy %s is for %s", p.Name, owner)
		}
	}
}

func selectorOf(t *testing.T, from *metav1.LabelSelector) labels.Selector {
	t.Helper()
	selector, err := metav1.LabelSelectorAsSelector(from)
	if err != nil {
		t.Fatal(err)
	}
	return selector
}

func checkWebhookServices(t *testing.T, r rendered) {
	t.Helper()
	for _, client := range clientConfigs(r) {
		if client.Service == nil || client.Service.Namespace != r.Namespace {
			t.Fatalf("a webhook calls %+v, want a Service of %s", client.Service, r.Namespace)
		}
		service := named[*corev1.Service](t, r, client.Service.Name)
		port := service.Spec.Ports[0]
		if port.Port != *client.Service.Port {
			t.Errorf("a webhook calls port %d, the Service has %d", *client.Service.Port, port.Port)
		}
		pod := selectedBy(t, r, service)
		if got := containerPort(pod, port.TargetPort.StrVal); got != 9443 {
			t.Errorf("the Service leads to port %d (%s), want 9443", got, port.TargetPort.StrVal)
		}
	}
}

func clientConfigs(r rendered) []admissionregistrationv1.WebhookClientConfig {
	var clients []admissionregistrationv1.WebhookClientConfig
	for _, c := range all[*admissionregistrationv1.MutatingWebhookConfiguration](r) {
		for _, w := range c.Webhooks {
			clients = append(clients, w.ClientConfig)
		}
	}
	for _, c := range all[*admissionregistrationv1.ValidatingWebhookConfiguration](r) {
		for _, w := range c.Webhooks {
			clients = append(clients, w.ClientConfig)
		}
	}
	return clients
}

func selectedBy(t *testing.T, r rendered, s *corev1.Service) pod {
	t.Helper()
	for _, p := range pods(r) {
		if labels.SelectorFromSet(s.Spec.Selector).Matches(labels.Set(p.labels)) {
			return p
		}
	}
	t.Fatalf("Service %s selects no Pod", s.Name)
	return pod{}
}

func containerPort(p pod, name string) int32 {
	for _, port := range p.spec.Containers[0].Ports {
		if port.Name == name {
			return port.ContainerPort
		}
	}
	return 0
}

func checkPodReferences(t *testing.T, r rendered, p pod) {
	t.Helper()
	named[*corev1.ServiceAccount](t, r, p.spec.ServiceAccountName)
	made := certificateSecrets(r)
	for _, v := range p.spec.Volumes {
		if v.ConfigMap != nil {
			named[*corev1.ConfigMap](t, r, v.ConfigMap.Name)
		}
		if v.Secret != nil && !made[v.Secret.SecretName] {
			t.Errorf("%s mounts Secret %q, which nobody makes", p.owner, v.Secret.SecretName)
		}
	}
	for _, probe := range []*corev1.Probe{p.spec.Containers[0].ReadinessProbe, p.spec.Containers[0].LivenessProbe} {
		if probe != nil && containerPort(p, probe.HTTPGet.Port.StrVal) != 8081 {
			t.Errorf("%s is probed at %s, want its port 8081", p.owner, probe.HTTPGet.Port.StrVal)
		}
	}
}

// certificateSecrets are the Secrets that the chart renders or cert-manager makes.
func certificateSecrets(r rendered) map[string]bool {
	made := map[string]bool{}
	for _, s := range all[*corev1.Secret](r) {
		made[s.Name] = true
	}
	for _, o := range r.objects {
		if o.GetKind() == "Certificate" {
			made[nested(o, "spec", "secretName")] = true
		}
	}
	return made
}

// The programs are told every name by a flag: they may assume none.
func TestFlagsNameTheObjects(t *testing.T) {
	r := render(t, elsewhere)
	mutating := all[*admissionregistrationv1.MutatingWebhookConfiguration](r)[0].Name
	validating := all[*admissionregistrationv1.ValidatingWebhookConfiguration](r)[0].Name
	service := named[*corev1.Service](t, r, "q7-blue-webhook").Name
	secret := all[*corev1.Secret](r)[0].Name
	want := map[string][]string{
		"q7-blue-controller": {
			"--config=/etc/agent-sandbox/platform.yaml", "--leader-elect=true", "--extensions=true",
			"--sandbox-concurrent-workers=100", "--sandbox-claim-concurrent-workers=50", "--sandbox-warm-pool-concurrent-workers=4",
			"--sandbox-template-concurrent-workers=1", "--claim-cold-start-after=2s", "--sandbox-write-behind-window=100ms", "--claim-bind-timeout=1h", "--disable-claim-events=true",
			"--metrics-bind-address=:8080", "--health-probe-bind-address=:8081",
			"--policy-namespace=$(POD_NAMESPACE)",
			"--policy-namespace-selector=kubernetes.io/metadata.name notin (tools-west,kube-system,kube-node-lease)",
			"--audit-interval=30m", "--audit-cpu-share=0.1", "--audit-reports=true",
		},
		"q7-blue-webhook": {
			"--config=/etc/agent-sandbox/platform.yaml", "--namespace=$(POD_NAMESPACE)", "--port=9443",
			"--socket-keeper=/var/run/agent-sandbox/socket/keeper", "--cert-dir=/var/run/agent-sandbox/certs", "--certificates=self", "--certificate-secret=" + secret,
			"--service-name=" + service, "--mutating-webhook-name=" + mutating, "--validating-webhook-name=" + validating,
			"--controller-users=system:serviceaccount:tools-west:q7-blue-controller", "--drain-delay=5s",
			"--metrics-bind-address=:8080", "--health-probe-bind-address=:8081",
		},
	}
	got := map[string][]string{}
	for _, d := range all[*appsv1.Deployment](r) {
		got[d.Name] = d.Spec.Template.Spec.Containers[0].Args
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("arguments (-want +got):\n%s", diff)
	}
	job := all[*batchv1.Job](r)[0]
	wantCleanup := []string{"cleanup", "--mutating-webhook-name=" + mutating, "--validating-webhook-name=" + validating}
	if diff := cmp.Diff(wantCleanup, job.Spec.Template.Spec.Containers[0].Args); diff != "" {
		t.Errorf("arguments of the clean-up (-want +got):\n%s", diff)
	}
}

// cert-manager's certificate must be for the name by which the apiserver calls.
func TestCertificateOfCertManager(t *testing.T) {
	in := elsewhere
	in.set = []string{"certificates.provider=cert-manager"}
	r := render(t, in)
	if n := kinds(r)["Secret"]; n != 0 {
		t.Errorf("%d Secrets, want none: cert-manager makes it", n)
	}
	serving := ""
	for _, o := range r.objects {
		if o.GetKind() == "Certificate" && strings.Contains(o.text, "q7-blue-webhook.tools-west.svc") {
			serving = o.GetNamespace() + "/" + o.GetName()
		}
	}
	if serving == "" {
		t.Fatal("no certificate for q7-blue-webhook.tools-west.svc")
	}
	for _, o := range r.objects {
		if strings.HasSuffix(o.GetKind(), "WebhookConfiguration") && o.GetAnnotations()["cert-manager.io/inject-ca-from"] != serving {
			t.Errorf("%s takes its CA from %q, want %q", o, o.GetAnnotations()["cert-manager.io/inject-ca-from"], serving)
		}
	}
	in.set = append(in.set, "certificates.certManager.issuerRef.name=corp", "certificates.certManager.issuerRef.kind=ClusterIssuer")
	if n := kinds(render(t, in))["Issuer"]; n != 0 {
		t.Errorf("%d Issuers beside the one of the values, want none", n)
	}
	if strings.Contains(render(t, elsewhere).Manifest, "cert-manager") {
		t.Error("without cert-manager the chart speaks of it")
	}
}

// cainjector tells the apiserver of a renewed authority at once, while replicas go on with the
// certificate of the old one: only if its key is the same is that one trusted.
func TestTheAuthorityKeepsItsKeyAndTheCertificateDoesNot(t *testing.T) {
	in := elsewhere
	in.set = []string{"certificates.provider=cert-manager"}
	got := map[bool]string{}
	for _, o := range render(t, in).objects {
		if o.GetKind() != "Certificate" {
			continue
		}
		authority, _, err := unstructured.NestedBool(o.Object, "spec", "isCA")
		policy, _, inKey := unstructured.NestedString(o.Object, "spec", "privateKey", "rotationPolicy")
		if err := errors.Join(err, inKey); err != nil {
			t.Fatal(err)
		}
		got[authority] = policy
	}
	if diff := cmp.Diff(map[bool]string{true: "Never", false: "Always"}, got); diff != "" {
		t.Errorf("rotation of keys by whether it is the authority's (-want +got):\n%s", diff)
	}
}

// Whoever is listed acts as our controllers beside them, not in their place.
func TestUsersThatActAsControllersAreAdded(t *testing.T) {
	in := elsewhere
	in.set = []string{"admission.controllerUsers={system:serviceaccount:velero:velero,ann}"}
	args := named[*appsv1.Deployment](t, render(t, in), "q7-blue-webhook").Spec.Template.Spec.Containers[0].Args
	want := "--controller-users=system:serviceaccount:tools-west:q7-blue-controller,system:serviceaccount:velero:velero,ann"
	if !slices.Contains(args, want) {
		t.Errorf("the arguments are %q, want %s among them", args, want)
	}
}
