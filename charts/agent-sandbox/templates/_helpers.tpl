{{/*
The text of a value, whatever its YAML type: whole numbers without an exponent.
*/}}
{{- define "agent-sandbox.string" -}}
{{- if and (kindIs "float64" .) (eq (floor .) .) -}}
{{- int64 . -}}
{{- else -}}
{{- . -}}
{{- end -}}
{{- end -}}

{{/*
A map of text to text as YAML, from a map whose values may be numbers or booleans.
*/}}
{{- define "agent-sandbox.stringMap" -}}
{{- $out := dict -}}
{{- range $key, $value := . -}}
{{- $_ := set $out $key (include "agent-sandbox.string" $value) -}}
{{- end -}}
{{- if $out -}}
{{- toYaml $out -}}
{{- end -}}
{{- end -}}

{{/*
The labels that select the Pods of a component. Call with (dict "root" $ "component" C).
*/}}
{{- define "agent-sandbox.selector" -}}
app.kubernetes.io/name: agent-sandbox
app.kubernetes.io/instance: {{ .root.Release.Name | quote }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{/*
The metadata of an object. Call with (dict "at" (dict "root" $ "component" C) "name" N),
with "cluster" for an object of the cluster, and with "labels" and "annotations" of its
own. The "app" and "extra" of "at" are as for podLabels.
*/}}
{{- define "agent-sandbox.metadata" -}}
{{- $root := .at.root -}}
{{- $labels := include "agent-sandbox.selector" .at | fromYaml -}}
{{- $_ := set $labels "helm.sh/chart" (printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-") -}}
{{- $_ := set $labels "app.kubernetes.io/version" (include "agent-sandbox.version" $root) -}}
{{- $_ := set $labels "app.kubernetes.io/part-of" "agent-sandbox" -}}
{{- $_ := set $labels "app.kubernetes.io/managed-by" $root.Release.Service -}}
{{- with .at.app -}}
{{- $_ := set $labels "app" . -}}
{{- end -}}
name: {{ .name }}
{{- if not .cluster }}
namespace: {{ $root.Release.Namespace | quote }}
{{- end }}
labels:
  {{- include "agent-sandbox.stringMap" (merge $labels (default dict .labels) (default dict .at.extra) $root.Values.commonLabels) | nindent 2 }}
{{- with merge (dict) (default dict .annotations) $root.Values.commonAnnotations }}
annotations:
  {{- include "agent-sandbox.stringMap" . | nindent 2 }}
{{- end }}
{{- end -}}

{{/*
The labels of a Pod: without those that a new chart version changes, so that it does
not restart Pods by itself. Call with (dict "root" $ "component" C), with "app" for the
Deployment's name and "extra" for labels of values, which ours win over.
*/}}
{{- define "agent-sandbox.podLabels" -}}
{{- $own := include "agent-sandbox.selector" . | fromYaml -}}
{{- with .app -}}
{{- $_ := set $own "app" . -}}
{{- end -}}
{{- include "agent-sandbox.stringMap" (merge $own (default dict .extra) .root.Values.commonLabels) -}}
{{- end -}}

{{- define "agent-sandbox.version" -}}
{{- coalesce .Values.webhook.image.tag .Values.image.tag .Chart.AppVersion | replace "+" "_" | trunc 63 | trimAll "-_." -}}
{{- end -}}

{{/*
The reference of a component's image. Call with (dict "root" $ "component" C).
*/}}
{{- define "agent-sandbox.image" -}}
{{- $shared := .root.Values.image -}}
{{- $image := (index .root.Values .component).image -}}
{{- $registry := default $shared.registry .root.Values.global.imageRegistry | trimSuffix "/" -}}
{{- $name := $image.repository -}}
{{- if $registry -}}
{{- $name = printf "%s/%s" $registry $name -}}
{{- end -}}
{{- if $image.digest -}}
{{- printf "%s@%s" $name $image.digest -}}
{{- else -}}
{{- printf "%s:%s" $name (coalesce $image.tag $shared.tag .root.Chart.AppVersion) -}}
{{- end -}}
{{- end -}}

{{/*
The imagePullSecrets of every Pod, or nothing.
*/}}
{{- define "agent-sandbox.pullSecrets" -}}
{{- $names := list -}}
{{- range concat .Values.global.imagePullSecrets .Values.image.pullSecrets -}}
{{- if kindIs "map" . -}}
{{- $names = append $names .name -}}
{{- else -}}
{{- $names = append $names . -}}
{{- end -}}
{{- end -}}
{{- with uniq $names -}}
imagePullSecrets:
  {{- range . }}
  - name: {{ . | quote }}
  {{- end }}
{{- end -}}
{{- end -}}

{{/*
The environment of a container: ours, with those of the same name replaced and others
added. Call with (dict "own" LIST "extra" LIST).
*/}}
{{- define "agent-sandbox.env" -}}
{{- $byName := dict -}}
{{- $order := list -}}
{{- range concat .own .extra -}}
{{- if not (hasKey $byName .name) -}}
{{- $order = append $order .name -}}
{{- end -}}
{{- $_ := set $byName .name . -}}
{{- end -}}
{{- range $order }}
- {{ toYaml (get $byName .) | nindent 2 | trim }}
{{- end }}
{{- end -}}

{{- define "agent-sandbox.podSecurityContext" -}}
{{- toYaml (mergeOverwrite (dict "runAsNonRoot" true "seccompProfile" (dict "type" "RuntimeDefault")) (deepCopy .)) -}}
{{- end -}}

{{- define "agent-sandbox.securityContext" -}}
{{- $restricted := dict
  "allowPrivilegeEscalation" false
  "capabilities" (dict "drop" (list "ALL"))
  "readOnlyRootFilesystem" true
  "runAsNonRoot" true
  "seccompProfile" (dict "type" "RuntimeDefault") -}}
{{- toYaml (mergeOverwrite $restricted (deepCopy .)) -}}
{{- end -}}

{{/*
Where the Pods of a component run. Call with (dict "root" $ "component" C).
*/}}
{{- define "agent-sandbox.scheduling" -}}
{{- $values := index .root.Values .component -}}
{{- with $values.priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
nodeSelector:
  {{- include "agent-sandbox.stringMap" (merge (dict "kubernetes.io/os" "linux") $values.nodeSelector) | nindent 2 }}
{{- with $values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.topologySpreadConstraints }}
topologySpreadConstraints:
  {{- range . }}
  {{- $constraint := deepCopy . }}
  {{- if not (hasKey $constraint "labelSelector") }}
  {{- $_ := set $constraint "labelSelector" (dict "matchLabels" (include "agent-sandbox.selector" $ | fromYaml)) }}
  {{- if not (hasKey $constraint "matchLabelKeys") }}
  {{- $_ := set $constraint "matchLabelKeys" (list "pod-template-hash") }}
  {{- end }}
  {{- end }}
  - {{ toYaml $constraint | nindent 4 | trim }}
  {{- end }}
{{- end }}
{{- end -}}

{{/*
The probes of both programs.
*/}}
{{- define "agent-sandbox.probes" -}}
startupProbe:
  httpGet: {path: /healthz, port: probes}
  periodSeconds: 1
  failureThreshold: 60
livenessProbe:
  httpGet: {path: /healthz, port: probes}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 3
readinessProbe:
  httpGet: {path: /readyz, port: probes}
  periodSeconds: 2
  timeoutSeconds: 2
  failureThreshold: 3
{{- end -}}

{{/*
Whether more than one Pod of a component runs, as text or nothing. Call with
(dict "root" $ "component" C).
*/}}
{{- define "agent-sandbox.many" -}}
{{- $values := index .root.Values .component -}}
{{- $scaled := dig "autoscaling" "enabled" false $values -}}
{{- $least := $scaled | ternary (dig "autoscaling" "minReplicas" 1 $values) $values.replicas -}}
{{- if gt (int64 $least) 1 -}}yes{{- end -}}
{{- end -}}

{{/*
The rules of a ClusterRole from a file that make generate writes. Call with
(dict "root" $ "file" F).
*/}}
{{- define "agent-sandbox.roleRules" -}}
{{- $role := .root.Files.Get .file | fromYaml -}}
{{- if not $role.rules -}}
{{- fail (printf "%s holds no rules; run make generate" .file) -}}
{{- end -}}
{{- $rules := list -}}
{{- $reports := and .root.Values.audit.enabled .root.Values.audit.reports -}}
{{- range $role.rules -}}
{{- if or $reports (not (or (has "openreports.io" .apiGroups) (has "reports.openreports.io" (default list .resourceNames)))) -}}
{{- $rules = append $rules . -}}
{{- end -}}
{{- end -}}
{{- toYaml $rules -}}
{{- end -}}
