{{/*
Every name is made here and handed to the programs by flags, so that nothing assumes
a release name or a namespace.
*/}}

{{/*
The start of every name: the release's, as a DNS label that begins with a letter.
*/}}
{{- define "agent-sandbox.fullname" -}}
{{- $name := default .Release.Name .Values.fullnameOverride | lower | replace "." "-" | trimAll "-" -}}
{{- if not (regexMatch "^[a-z]" $name) -}}
{{- $name = printf "r-%s" $name -}}
{{- end -}}
{{- $name -}}
{{- end -}}

{{/*
A name of at most 63 characters. One that is cut ends in a hash of the whole, so that
two long names never become one. Call with (dict "base" B "tail" T).
*/}}
{{- define "agent-sandbox.fit" -}}
{{- $whole := printf "%s%s" .base .tail -}}
{{- if le (len $whole) 63 -}}
{{- $whole -}}
{{- else -}}
{{- $hash := sha256sum $whole | trunc 8 -}}
{{- $room := int (sub 54 (len .tail)) -}}
{{- if lt $room 1 -}}
{{- printf "%s-%s" (trunc 54 $whole | trimSuffix "." | trimSuffix "-") $hash -}}
{{- else -}}
{{- printf "%s-%s%s" (trunc $room .base | trimSuffix "-") $hash .tail -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/*
The name of a namespaced object. Call with (dict "root" $ "suffix" "controller").
*/}}
{{- define "agent-sandbox.name" -}}
{{- include "agent-sandbox.fit" (dict "base" (include "agent-sandbox.fullname" .root) "tail" (printf "-%s" .suffix)) -}}
{{- end -}}

{{/*
The name of a cluster-scoped object. A namespace holds no dot, so no two releases of
a cluster share one. Call with (dict "root" $ "suffix" "controller").
*/}}
{{- define "agent-sandbox.clusterName" -}}
{{- $base := printf "%s-%s" (include "agent-sandbox.fullname" .root) .suffix -}}
{{- include "agent-sandbox.fit" (dict "base" $base "tail" (printf ".%s" .root.Release.Namespace)) -}}
{{- end -}}

{{/*
The name of a component's ServiceAccount. Call with (dict "root" $ "component" "controller").
*/}}
{{- define "agent-sandbox.serviceAccountName" -}}
{{- $values := index .root.Values .component -}}
{{- default (include "agent-sandbox.name" (dict "root" .root "suffix" .component)) $values.serviceAccount.name -}}
{{- end -}}

{{/*
The user name of the controller's ServiceAccount.
*/}}
{{- define "agent-sandbox.controllerUser" -}}
{{- printf "system:serviceaccount:%s:%s" .Release.Namespace (include "agent-sandbox.serviceAccountName" (dict "root" . "component" "controller")) -}}
{{- end -}}

{{/*
The Secret of the webhook's certificate. Each provider has its own, as neither can take
over what the other made.
*/}}
{{- define "agent-sandbox.certificateSecret" -}}
{{- $suffix := eq .Values.certificates.provider "cert-manager" | ternary "webhook-tls" "webhook-cert" -}}
{{- include "agent-sandbox.name" (dict "root" . "suffix" $suffix) -}}
{{- end -}}

{{- define "agent-sandbox.mutatingWebhook" -}}
{{- include "agent-sandbox.clusterName" (dict "root" . "suffix" "mutate") -}}
{{- end -}}

{{- define "agent-sandbox.validatingWebhook" -}}
{{- include "agent-sandbox.clusterName" (dict "root" . "suffix" "validate") -}}
{{- end -}}
