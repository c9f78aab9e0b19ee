// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package keys

// Labels of the contract.
const (
	// SandboxNameHash is on the Pod, the Service and the volume claims of a Sandbox:
	// NameHash of its name.
	SandboxNameHash = "agents.x-k8s.io/sandbox-name-hash"
	// WarmPoolSandbox is on a Sandbox and its Pod while a pool owns them: NameHash of
	// the pool's name.
	WarmPoolSandbox = "agents.x-k8s.io/warm-pool-sandbox"
	// SandboxTemplateRefHash is on templates and what is made from them: NameHash of
	// the template's name.
	SandboxTemplateRefHash = "agents.x-k8s.io/sandbox-template-ref-hash"
	// SandboxTemplateHash is on a pool's Sandbox: the hash of the blueprint.
	SandboxTemplateHash = "agents.x-k8s.io/sandbox-template-hash"
	// SandboxPodTemplateHash is on a pool's Sandbox: the hash of the podTemplate.
	SandboxPodTemplateHash = "agents.x-k8s.io/sandbox-pod-template-hash"
	// LaunchType is on a Sandbox: warm or cold.
	LaunchType = "agents.x-k8s.io/launch-type"
	// CreatedBy is on a claim, its Sandbox and its Pod: which client asked.
	CreatedBy = "agents.x-k8s.io/created-by"
	// ClaimUID is on a claim's Sandbox and its Pod.
	ClaimUID = "agents.x-k8s.io/claim-uid"
	// Adoptable is set by a user on a Pod, volume claim or Service to hand it over.
	Adoptable = "agents.x-k8s.io/adoptable"
)

// Values of the label created-by that the controllers write.
const (
	// CreatedByController is on what a controller made by itself.
	CreatedByController = "controller"
	// CreatedByUnknown stands for every client that is not known by name.
	CreatedByUnknown = "unknown"
)

// Annotations of the contract.
const (
	// PodName is on a Sandbox: the name of its Pod.
	PodName = "agents.x-k8s.io/pod-name"
	// SandboxTemplateRef is on a Sandbox: the name of its template.
	SandboxTemplateRef = "agents.x-k8s.io/sandbox-template-ref"
	// PropagatedLabels is on a Pod: the sorted keys of the labels that came from the
	// podTemplate, separated by commas.
	PropagatedLabels = "agents.x-k8s.io/propagated-labels"
	// PropagatedAnnotations is on a Pod: the same for annotations.
	PropagatedAnnotations = "agents.x-k8s.io/propagated-annotations"
	// SandboxName is on a claim: the Sandbox that serves it.
	SandboxName = "agents.x-k8s.io/sandbox-name"
	// ControllerFirstObservedAt is on a claim: when the platform first saw it.
	ControllerFirstObservedAt = "agents.x-k8s.io/controller-first-observed-at"
	// ClaimFirstReadyAt is on a claim: when it first was Ready.
	ClaimFirstReadyAt = "agents.x-k8s.io/claim-first-ready-at"
	// ClientFirstRequestedAt is on a claim: when the client asked.
	ClientFirstRequestedAt = "agents.x-k8s.io/client-first-requested-at"
	// WebhookFirstObservedAt is on a claim: when an optional webhook of the user saw it.
	WebhookFirstObservedAt = "agents.x-k8s.io/webhook-first-observed-at"
	// TraceContext is on a claim and its Sandbox: W3C trace headers as JSON.
	TraceContext = "opentelemetry.io/trace-context"
)

// Keys of the platform.
const (
	// Prefix begins every key of the platform.
	Prefix = "platform.agents.x-k8s.io/"
	// Tier is a label of a Namespace: the name of its tier.
	Tier = Prefix + "tier"
	// Sandbox is a label of every Pod of a Sandbox; its value is "true". The deny-all
	// floor of a namespace selects it.
	Sandbox = Prefix + "sandbox"
	// EgressProfile is an annotation of a Sandbox or template, set by its user, and a
	// label of the Pod, set by the controller: the name of the egress profile.
	EgressProfile = Prefix + "egress-profile"
	// Ingress is a label of the Pod, set by the controller: "namespace" when Pods of the
	// same namespace may connect to it.
	Ingress = Prefix + "ingress"
	// Template is a label of a Sandbox made from a template, and of its Pod: TemplateKey
	// of the template's name. The template's NetworkPolicy selects it besides the
	// contract's hash, which can be made to collide.
	Template = Prefix + "template"
	// Rules is a label of a template's NetworkPolicy: RulesKey of its rules, as the
	// controller wrote them, where the template alone says what they are.
	Rules = Prefix + "rules"
	// RestartPolicy is an annotation: Recreate makes a new Pod when one failed.
	RestartPolicy = Prefix + "restart-policy"
	// VolumeRetention is an annotation: Retain keeps the volumes of a deleted Sandbox.
	VolumeRetention = Prefix + "volume-retention"
	// Creator is an annotation of a Sandbox or claim, set by admission: the name of the
	// user who created it. The Sandbox of a claim has the claim's.
	Creator = Prefix + "creator"
	// RetainedBy is a label of a volume claim that outlives its Sandbox: the UID of the
	// Sandbox that has it, or had it last.
	RetainedBy = Prefix + "retained-by"
	// RetainedFor is a label of such a volume claim: CreatorKey of the Sandbox's creator,
	// who alone gets it back.
	RetainedFor = Prefix + "retained-for"
	// BindTimeout is an annotation of a claim: how long it may stay unbound, as a Go
	// duration.
	BindTimeout = Prefix + "bind-timeout"
	// MaxLifetime is a label of a Pod, and of the Sandbox that serves a claim: the longest
	// life that the tier gave when the Pod was made or the claim was served, as a Go
	// duration.
	MaxLifetime = Prefix + "max-lifetime"
	// Defaulted is an annotation: the fields that admission set, separated by commas.
	Defaulted = Prefix + "defaulted"
	// PolicySource is a label of a ConfigMap of the release namespace whose value is
	// "true": its policies are in force.
	PolicySource = Prefix + "policy-source"
	// RemovalConfirmed is an annotation of a policy ConfigMap whose value is "true": once
	// the ConfigMap is deleted, its rules are out of force.
	RemovalConfirmed = Prefix + "removal-confirmed"
	// ManagedBy is a label of the NetworkPolicies that the controller keeps.
	ManagedBy = Prefix + "managed-by"
)
