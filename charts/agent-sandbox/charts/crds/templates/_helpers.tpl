{{/*
The text of a value, whatever its YAML type: whole numbers without an exponent.
*/}}
{{- define "crds.string" -}}
{{- if and (kindIs "float64" .) (eq (floor .) .) -}}
{{- int64 . -}}
{{- else -}}
{{- . -}}
{{- end -}}
{{- end -}}

{{/*
A map of text to text as YAML, from a map whose values may be numbers or booleans.
*/}}
{{- define "crds.stringMap" -}}
{{- $out := dict -}}
{{- range $key, $value := . -}}
{{- $_ := set $out $key (include "crds.string" $value) -}}
{{- end -}}
{{- toYaml $out -}}
{{- end -}}

{{/*
Annotations of a definition. controller-gen's own follows them in each file, so that key is left out.
*/}}
{{- define "crds.annotations" -}}
{{- $out := omit .Values.annotations "controller-gen.kubebuilder.io/version" "helm.sh/resource-policy" -}}
{{- if .Values.keep -}}
{{- $out = set $out "helm.sh/resource-policy" "keep" -}}
{{- end -}}
{{- if $out -}}
{{- include "crds.stringMap" $out -}}
{{- end -}}
{{- end -}}

{{/*
Labels of a definition; those that name the release win.
*/}}
{{- define "crds.labels" -}}
{{- $own := dict
  "helm.sh/chart" (printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-")
  "app.kubernetes.io/name" "agent-sandbox"
  "app.kubernetes.io/instance" .Release.Name
  "app.kubernetes.io/version" (.Chart.AppVersion | replace "+" "_" | trunc 63)
  "app.kubernetes.io/component" "crds"
  "app.kubernetes.io/part-of" "agent-sandbox"
  "app.kubernetes.io/managed-by" .Release.Service -}}
{{- include "crds.stringMap" (merge $own .Values.labels) -}}
{{- end -}}
