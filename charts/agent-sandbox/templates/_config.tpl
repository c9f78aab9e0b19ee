{{/*
The platform configuration, which both programs read at their start.
*/}}
{{- define "agent-sandbox.platform" -}}
{{- $platform := deepCopy .Values.platform -}}
{{- if not $platform.router.namespace -}}
{{- $_ := set $platform.router "namespace" .Release.Namespace -}}
{{- end -}}
{{- $_ := set $platform.router "podLabels" (include "agent-sandbox.stringMap" $platform.router.podLabels | fromYaml) -}}
{{- $_ := set $platform.cluster.dns "podLabels" (include "agent-sandbox.stringMap" $platform.cluster.dns.podLabels | fromYaml) -}}
{{- toYaml $platform -}}
{{- end -}}

{{/*
The configuration of the rules. YAML reads a bare Off as false, so that is meant.
*/}}
{{- define "agent-sandbox.policies" -}}
{{- $rules := dict -}}
{{- range $id, $rule := .Values.policies.rules -}}
{{- $rule = deepCopy $rule -}}
{{- if kindIs "bool" $rule.enforcement -}}
{{- $_ := set $rule "enforcement" "Off" -}}
{{- end -}}
{{- $_ := set $rules $id $rule -}}
{{- end -}}
{{- toYaml (dict "rules" $rules) -}}
{{- end -}}
