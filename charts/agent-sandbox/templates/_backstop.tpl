{{/*
What the backstop's ValidatingAdmissionPolicies share. Their expressions are written so
that none of them can fail on an object that the apiserver stores.
*/}}

{{/*
The name of a policy and of its binding. Call with (dict "root" $ "about" "pods").
*/}}
{{- define "agent-sandbox.backstopName" -}}
{{- include "agent-sandbox.clusterName" (dict "root" .root "suffix" (printf "backstop-%s" .about)) -}}
{{- end -}}

{{/*
A policy down to its spec. Call with (dict "root" $ "about" A).
*/}}
{{- define "agent-sandbox.backstopPolicy" -}}
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  {{- include "agent-sandbox.metadata" (dict "at" (dict "root" .root "component" "backstop") "name" (include "agent-sandbox.backstopName" .) "cluster" true) | nindent 2 }}
spec:
  failurePolicy: Fail
{{- end -}}

{{/*
The binding of a policy. Call with (dict "root" $ "about" A), with "tail" for one of
several bindings, and with what the binding's spec holds besides as "spec".
*/}}
{{- define "agent-sandbox.backstopBinding" -}}
{{- $about := printf "%s%s" .about (default "" .tail) -}}
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  {{- include "agent-sandbox.metadata" (dict "at" (dict "root" .root "component" "backstop") "name" (include "agent-sandbox.backstopName" (dict "root" .root "about" $about)) "cluster" true) | nindent 2 }}
spec:
  policyName: {{ include "agent-sandbox.backstopName" . }}
  validationActions: {{ toJson .root.Values.backstop.validationActions }}
  {{- with .spec }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}

{{/*
The resources that a policy judges. Call with a list of (dict "group" G "version" V
"resources" R "operations" O).
*/}}
{{- define "agent-sandbox.backstopMatch" -}}
matchConstraints:
  matchPolicy: Equivalent
  namespaceSelector: {}
  objectSelector: {}
  resourceRules:
    {{- range . }}
    - apiGroups: [{{ .group | quote }}]
      apiVersions: [{{ default "v1" .version }}]
      operations: {{ toJson .operations }}
      resources: {{ toJson .resources }}
      scope: "*"
    {{- end }}
{{- end -}}

{{/*
Our four kinds, for agent-sandbox.backstopMatch.
*/}}
{{- define "agent-sandbox.backstopMatchKinds" -}}
{{- $operations := list "CREATE" "UPDATE" -}}
{{- include "agent-sandbox.backstopMatch" (list
  (dict "group" "agents.x-k8s.io" "version" "v1beta1" "operations" $operations "resources" (list "sandboxes"))
  (dict "group" "extensions.agents.x-k8s.io" "version" "v1beta1" "operations" $operations "resources" (list "sandboxtemplates" "sandboxwarmpools" "sandboxclaims"))) -}}
{{- end -}}

{{/*
Whose requests are not judged: our controllers, and those of Kubernetes that delete and
clean up.
*/}}
{{- define "agent-sandbox.backstopNotByThePlatform" -}}
- name: not-by-the-platform
  expression: >-
    !(request.userInfo.username in [
    '{{ include "agent-sandbox.controllerUser" . }}',
    'system:serviceaccount:kube-system:generic-garbage-collector',
    'system:serviceaccount:kube-system:namespace-controller',
    'system:kube-controller-manager'])
{{- end -}}

{{/*
Whether the administrator may pass: a virtual verb, which nobody but those with every
right has until somebody grants it. Call with the name of the policy.
*/}}
{{- define "agent-sandbox.backstopBypass" -}}
authorizer.group('platform.agents.x-k8s.io').resource('backstop').namespace(request.?namespace.orValue('')).name('{{ . }}').check('bypass').allowed()
{{- end -}}

{{/*
Whether the key k belongs to the reserved domains.
*/}}
{{- define "agent-sandbox.backstopReserved" -}}
k.matches(r'^([^/]*\.)?agents\.x-k8s\.io/')
{{- end -}}

{{/*
The tiers by name as a CEL list.
*/}}
{{- define "agent-sandbox.backstopTiers" -}}
{{- keys .Values.platform.tiers | sortAlpha | toJson -}}
{{- end -}}

{{/*
Whether a rule of the library denies, as text or nothing. Call with (dict "root" $ "rule" ID).
*/}}
{{- define "agent-sandbox.denies" -}}
{{- $rule := default dict (index .root.Values.policies.rules .rule) -}}
{{- $enforcement := "Deny" -}}
{{- if hasKey $rule "enforcement" -}}
{{- $enforcement = $rule.enforcement | toString -}}
{{- end -}}
{{- if eq $enforcement "Deny" -}}yes{{- end -}}
{{- end -}}

{{/*
Whether the backstop holds a rule of the library, as text or nothing: the apiserver asks
it before the webhook, whose answer lists every fault, so it speaks where nobody else
would. Call with (dict "root" $ "rule" ID).
*/}}
{{- define "agent-sandbox.backstopHolds" -}}
{{- if eq "yes" (include "agent-sandbox.backstopJudges" .root) -}}
{{- include "agent-sandbox.denies" . -}}
{{- end -}}
{{- end -}}

{{- define "agent-sandbox.backstopJudges" -}}
{{- if or (eq .Values.backstop.rules "Always") (eq .Values.webhook.validating.failurePolicy "Ignore") -}}yes{{- end -}}
{{- end -}}

{{/*
A CEL list of the paths of containers that meet a condition on c. Call with the condition.
*/}}
{{- define "agent-sandbox.backstopContainers" -}}
{{- $parts := list -}}
{{- range $list := list "initContainers" "containers" "ephemeralContainers" -}}
{{- $parts = append $parts (printf "variables.%s.filter(c, %s).map(c, '%s[' + string(variables.%s.indexOf(c)) + ']')" $list $ $list $list) -}}
{{- end -}}
{{- join " +\n" $parts -}}
{{- end -}}

{{/*
The RuntimeClasses that a tier takes, as a JSON list: those of its list where one is
required, which all reach its floor, and else those of the order down to the floor.
Nothing for a tier that takes any. Call with (dict "root" $ "tier" T).
*/}}
{{- define "agent-sandbox.takenClasses" -}}
{{- $choice := .tier.runtimeClass -}}
{{- if $choice.required -}}
{{- $names := list -}}
{{- range $choice.classes -}}
{{- if kindIs "map" . -}}
{{- $names = append $names .name -}}
{{- else -}}
{{- $names = append $names . -}}
{{- end -}}
{{- end -}}
{{- toJson $names -}}
{{- else if $choice.floor -}}
{{- $reach := list -}}
{{- $below := false -}}
{{- range .root.Values.platform.runtimeClassOrder -}}
{{- if not $below -}}
{{- $reach = append $reach . -}}
{{- end -}}
{{- $below = or $below (eq . $choice.floor) -}}
{{- end -}}
{{- toJson $reach -}}
{{- end -}}
{{- end -}}
