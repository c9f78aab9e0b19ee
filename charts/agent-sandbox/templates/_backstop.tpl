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
Whose requests are not judged: our controllers' and, unless they make something, those of
the controllers of Kubernetes that delete and clean up. Where the controller manager has
one identity for all that it does, the Pods of Deployments are made under it.
*/}}
{{- define "agent-sandbox.backstopNotByThePlatform" -}}
- name: not-by-the-platform
  expression: >-
    request.userInfo.username != '{{ include "agent-sandbox.controllerUser" . }}' &&
    (request.operation == 'CREATE' || !(request.userInfo.username in [
    'system:serviceaccount:kube-system:generic-garbage-collector',
    'system:serviceaccount:kube-system:namespace-controller',
    'system:kube-controller-manager']))
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
Whether the owner reference o makes one of our kinds the controller of an object.
*/}}
{{- define "agent-sandbox.backstopControls" -}}
o.?controller.orValue(false) == true && o.apiVersion.matches('^(extensions[.])?agents[.]x-k8s[.]io/')
{{- end -}}

{{/*
The tiers by name as a CEL list.
*/}}
{{- define "agent-sandbox.backstopTiers" -}}
{{- keys .Values.platform.tiers | sortAlpha | toJson -}}
{{- end -}}

{{/*
The tier of the request's namespace; an empty label is as good as none.
*/}}
{{- define "agent-sandbox.backstopTier" -}}
optional.ofNonZeroValue(namespaceObject.metadata.?labels[?'platform.agents.x-k8s.io/tier'].orValue('')).orValue({{ .Values.platform.defaultTier | toJson }})
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
A CEL list of the paths of containers that meet a condition on c. Call with the condition;
BEFORE in it stands for the containers of the same list before the change.
*/}}
{{- define "agent-sandbox.backstopContainers" -}}
{{- $parts := list -}}
{{- range $list := list "initContainers" "containers" "ephemeralContainers" -}}
{{- $condition := $ | replace "BEFORE" (printf "variables.%sBefore" $list) -}}
{{- $parts = append $parts (printf "variables.%s.filter(c, %s).map(c, '%s[' + string(variables.%s.indexOf(c)) + ']')" $list $condition $list $list) -}}
{{- end -}}
{{- join " +\n" $parts -}}
{{- end -}}

{{/*
The RuntimeClasses that a tier takes, as a JSON list: those of its list where one is
required, which all reach its floor, and else those of the order down to the floor.
Nothing for a tier that takes any. Call with (dict "root" $ "tier" T).
*/}}
{{- define "agent-sandbox.takenClasses" -}}
{{- $choice := default dict .tier.runtimeClass -}}
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

{{/*
The rules of an egress profile as a JSON list, for backstop-egress: CEL wants all values
of a literal to be of one type, so everything is a list of strings. Each rule has blocks
({cidr, except}), pods ({own, namespace, labels}, labels as key=value) and ports
({protocol, first, last}); no ports mean all of them. Call with (dict "root" $ "profile" P).
*/}}
{{- define "agent-sandbox.ceilingRules" -}}
{{- $rules := list -}}
{{- $cluster := .root.Values.platform.cluster -}}
{{- $dnsPorts := list (dict "protocol" (list "UDP" "TCP") "first" (list "53") "last" (list "53")) -}}
{{- if .profile.dns -}}
{{- $blocks := list -}}
{{- range $cluster.dnsAddresses -}}
{{- $blocks = append $blocks (include "agent-sandbox.host" . | fromJson) -}}
{{- end -}}
{{- $namespace := list (printf "kubernetes.io/metadata.name=%s" $cluster.dns.namespace) -}}
{{- $pods := list (dict "own" list "namespace" $namespace "labels" (include "agent-sandbox.pairs" $cluster.dns.podLabels | fromJsonArray)) -}}
{{- $rules = append $rules (dict "blocks" $blocks "pods" $pods "ports" $dnsPorts) -}}
{{- end -}}
{{- with .profile.nameservers -}}
{{- $blocks := list -}}
{{- range . -}}
{{- $blocks = append $blocks (include "agent-sandbox.host" . | fromJson) -}}
{{- end -}}
{{- $rules = append $rules (dict "blocks" $blocks "pods" list "ports" $dnsPorts) -}}
{{- end -}}
{{- if .profile.internet -}}
{{- $closed := concat (.root.Files.Get "files/closed-ranges.json" | fromJsonArray) $cluster.cidrs -}}
{{- $v4 := list -}}
{{- $v6 := list -}}
{{- range $closed -}}
{{- if contains ":" . -}}{{- $v6 = append $v6 . -}}{{- else -}}{{- $v4 = append $v4 . -}}{{- end -}}
{{- end -}}
{{- $rules = append $rules (dict "blocks" (list (dict "cidr" (list "0.0.0.0/0") "except" $v4) (dict "cidr" (list "::/0") "except" $v6)) "pods" list "ports" list) -}}
{{- end -}}
{{- range .profile.rules -}}
{{- $rules = append $rules (include "agent-sandbox.ceilingRule" . | fromJson) -}}
{{- end -}}
{{- toJson $rules -}}
{{- end -}}

{{/*
One address as a block, for agent-sandbox.ceilingRules. Call with the address.
*/}}
{{- define "agent-sandbox.host" -}}
{{- toJson (dict "cidr" (list (printf "%s/%s" . (ternary "128" "32" (contains ":" .)))) "except" list) -}}
{{- end -}}

{{/*
One rule of a profile, for agent-sandbox.ceilingRules. What cannot be compared, such as
expressions and names of ports, allows nothing. Call with the rule.
*/}}
{{- define "agent-sandbox.ceilingRule" -}}
{{- $rule := . -}}
{{- $blocks := list -}}
{{- range $rule.cidrs -}}
{{- $blocks = append $blocks (dict "cidr" (list .) "except" (default list $rule.except)) -}}
{{- end -}}
{{- $namespace := default dict $rule.namespaceSelector -}}
{{- $selector := default dict $rule.podSelector -}}
{{- $pods := list -}}
{{- if and (or (hasKey $rule "namespaceSelector") (hasKey $rule "podSelector")) (not $namespace.matchExpressions) (not $selector.matchExpressions) -}}
{{- $own := ternary list (list "true") (hasKey $rule "namespaceSelector") -}}
{{- $pods = list (dict "own" $own "namespace" (include "agent-sandbox.pairs" $namespace.matchLabels | fromJsonArray) "labels" (include "agent-sandbox.pairs" $selector.matchLabels | fromJsonArray)) -}}
{{- end -}}
{{- $ports := list -}}
{{- range $rule.ports -}}
{{- $number := kindIs "string" .port | ternary "0" (.port | int64 | toString) -}}
{{- $ports = append $ports (dict "protocol" (list (default "TCP" .protocol)) "first" (list $number) "last" (list (.endPort | default .port | int64 | toString))) -}}
{{- end -}}
{{- toJson (dict "blocks" $blocks "pods" $pods "ports" $ports) -}}
{{- end -}}

{{/*
Labels as a JSON list of key=value. Call with the labels.
*/}}
{{- define "agent-sandbox.pairs" -}}
{{- $pairs := list -}}
{{- range $key, $value := . -}}
{{- $pairs = append $pairs (printf "%s=%s" $key (toString $value)) -}}
{{- end -}}
{{- toJson $pairs -}}
{{- end -}}
