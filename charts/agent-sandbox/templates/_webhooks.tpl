{{/*
Namespaces whose objects are judged: all but our own, kube-system, kube-node-lease and
what values exempt.
*/}}
{{- define "agent-sandbox.namespaceSelector" -}}
matchExpressions:
  - key: kubernetes.io/metadata.name
    operator: NotIn
    values:
      {{- range concat (list .Release.Namespace "kube-system" "kube-node-lease") .Values.webhook.exemptNamespaces | uniq }}
      - {{ . | quote }}
      {{- end }}
  {{- with .Values.webhook.namespaceMatchExpressions }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}

{{/*
The same as a selector in one line, for the controller.
*/}}
{{- define "agent-sandbox.namespaceLabels" -}}
{{- $terms := list -}}
{{- range (include "agent-sandbox.namespaceSelector" . | fromYaml).matchExpressions -}}
{{- $values := join "," .values -}}
{{- $term := get (dict "In" (printf "%s in (%s)" .key $values) "NotIn" (printf "%s notin (%s)" .key $values) "Exists" .key "DoesNotExist" (printf "!%s" .key)) .operator -}}
{{- $terms = append $terms $term -}}
{{- end -}}
{{- join "," $terms -}}
{{- end -}}

{{/*
Requests that are judged. The conditions are written so that none of them can fail:
object and oldObject are compared only in an UPDATE, where both exist. A Scale has spec
and metadata like the others. They say what review.harmless says in the webhook, so that
suspending and shrinking work while nobody answers. Where controllers have no credentials of
their own, the garbage collector patches owners as system:kube-controller-manager; so does the
autoscaler scale, which is judged.
*/}}
{{- define "agent-sandbox.matchConditions" -}}
- name: not-an-update-by-the-platform
  expression: >-
    request.operation != 'UPDATE' ||
    !(request.userInfo.username in [
    '{{ include "agent-sandbox.controllerUser" . }}',
    'system:serviceaccount:kube-system:generic-garbage-collector',
    'system:serviceaccount:kube-system:namespace-controller'])
- name: not-an-update-by-the-controller-manager
  expression: >-
    request.operation != 'UPDATE' || request.kind.kind == 'Scale' ||
    request.userInfo.username != 'system:kube-controller-manager'
- name: not-on-its-way-out
  expression: >-
    request.operation != 'UPDATE' ||
    !has(oldObject.metadata.deletionTimestamp)
- name: changes-what-is-judged
  expression: >-
    request.operation != 'UPDATE' ||
    object.?spec.orValue({}) != oldObject.?spec.orValue({}) ||
    {{ include "agent-sandbox.changesMetadata" . }}
- name: not-only-suspended
  expression: >-
    request.operation != 'UPDATE' || request.kind.kind != 'Sandbox' ||
    object.?spec.?operatingMode.orValue('') != 'Suspended' ||
    {{ include "agent-sandbox.changesBeside" (list "?spec" "operatingMode") }} ||
    {{ include "agent-sandbox.changesMetadata" . }}
- name: not-only-smaller
  expression: >-
    request.operation != 'UPDATE' || !(request.kind.kind in ['SandboxWarmPool', 'Scale']) ||
    object.?spec.?replicas.orValue(0) > oldObject.?spec.?replicas.orValue(0) ||
    {{ include "agent-sandbox.changesBeside" (list "?spec" "replicas") }} ||
    {{ include "agent-sandbox.changesMetadata" . }}
{{- with .Values.webhook.matchConditions }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/*
Whether an update changes metadata that is judged: what kubectl notes of an apply is not.
*/}}
{{- define "agent-sandbox.changesMetadata" -}}
object.metadata.?labels.orValue({}) != oldObject.metadata.?labels.orValue({}) ||
    object.metadata.?ownerReferences.orValue([]) != oldObject.metadata.?ownerReferences.orValue([]) ||
    {{ include "agent-sandbox.changesBeside" (list "metadata.?annotations" "kubectl.kubernetes.io/last-applied-configuration") }}
{{- end -}}

{{/*
Whether an update changes a map beside one of its members. Call with (list PATH MEMBER).
*/}}
{{- define "agent-sandbox.changesBeside" -}}
{{- $new := printf "object.%s.orValue({})" (index . 0) -}}
{{- $old := printf "oldObject.%s.orValue({})" (index . 0) -}}
{{- $member := index . 1 -}}
{{ $new }}.exists(k, k != '{{ $member }}' && (!(k in {{ $old }}) || {{ $new }}[k] != {{ $old }}[k])) ||
    {{ $old }}.exists(k, k != '{{ $member }}' && !(k in {{ $new }}))
{{- end -}}

{{/*
The rules of both configurations. Call with the list of extensions' resources.
*/}}
{{- define "agent-sandbox.rules" -}}
- apiGroups: [agents.x-k8s.io]
  apiVersions: [v1beta1]
  operations: [CREATE, UPDATE]
  resources: [sandboxes]
  scope: Namespaced
- apiGroups: [extensions.agents.x-k8s.io]
  apiVersions: [v1beta1]
  operations: [CREATE, UPDATE]
  resources: {{ toJson . }}
  scope: Namespaced
{{- end -}}

{{/*
Where the webhook listens. Call with (dict "root" $ "path" P).
*/}}
{{- define "agent-sandbox.clientConfig" -}}
service:
  name: {{ include "agent-sandbox.name" (dict "root" .root "suffix" "webhook") }}
  namespace: {{ .root.Release.Namespace | quote }}
  path: {{ .path }}
  port: 443
{{- end -}}

{{/*
The annotations of both configurations.
*/}}
{{- define "agent-sandbox.webhookAnnotations" -}}
{{- $own := dict -}}
{{- if eq .Values.certificates.provider "cert-manager" -}}
{{- $_ := set $own "cert-manager.io/inject-ca-from" (printf "%s/%s" .Release.Namespace (include "agent-sandbox.certificateSecret" .)) -}}
{{- end -}}
{{- include "agent-sandbox.stringMap" (merge $own .Values.webhook.annotations) -}}
{{- end -}}
