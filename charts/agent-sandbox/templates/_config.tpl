{{/*
The platform configuration, which both programs read at their start. What its `identity` allows
is what the two rules allow, so that the controller gives a Pod to what they admit.
*/}}
{{- define "agent-sandbox.platform" -}}
{{- $platform := deepCopy .Values.platform -}}
{{- if not $platform.router.namespace -}}
{{- $_ := set $platform.router "namespace" .Release.Namespace -}}
{{- end -}}
{{- $_ := set $platform.router "podLabels" (include "agent-sandbox.stringMap" $platform.router.podLabels | fromYaml) -}}
{{- $_ := set $platform.cluster.dns "podLabels" (include "agent-sandbox.stringMap" $platform.cluster.dns.podLabels | fromYaml) -}}
{{- $_ := set $platform "claims" (dict "labelDomains" .Values.claims.labelDomains) -}}
{{- $mounted := dig "automount-token" "parameters" "allowServiceAccounts" list .Values.policies.rules -}}
{{- $projected := dig "projected-identity" "parameters" dict .Values.policies.rules -}}
{{- $any := list "*" -}}
{{- $_ := set $platform "identity" (dict
  "serviceAccounts" (ternary $mounted $any (eq "yes" (include "agent-sandbox.denies" (dict "root" . "rule" "automount-token"))))
  "audiences" (ternary (dig "allowedAudiences" list $projected) $any (eq "yes" (include "agent-sandbox.denies" (dict "root" . "rule" "projected-identity"))))
  "maxExpirationSeconds" (dig "maxExpirationSeconds" 3600 $projected | int64)) -}}
{{- range $platform.tiers -}}
{{- $resources := default dict .resources -}}
{{- if not (hasKey $resources "podLevel") -}}
{{- $_ := set $resources "podLevel" (eq "true" (include "agent-sandbox.podLevelResources" $)) -}}
{{- end -}}
{{- $_ := set . "resources" $resources -}}
{{- end -}}
{{- toYaml $platform -}}
{{- end -}}

{{/*
Whether the cluster keeps by default what a Pod bounds as a whole.
*/}}
{{- define "agent-sandbox.podLevelResources" -}}
{{- semverCompare ">=1.34.0-0" .Capabilities.KubeVersion.Version -}}
{{- end -}}

{{/*
"yes" when a rule of an egress profile names Services.
*/}}
{{- define "agent-sandbox.namesServices" -}}
{{- $named := "no" -}}
{{- range .Values.platform.egressProfiles -}}
{{- range .rules -}}
{{- if .services -}}
{{- $named = "yes" -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $named -}}
{{- end -}}

{{/*
The parameters of the rule dns: the resolvers that egress profiles set are allowed besides
those that it allows anyway. Call with (dict "root" $ "parameters" P).
*/}}
{{- define "agent-sandbox.dnsParameters" -}}
{{- $set := list -}}
{{- range .root.Values.platform.egressProfiles -}}
{{- $set = concat $set (default list .nameservers) -}}
{{- end -}}
{{- if $set -}}
{{- $allowed := dig "allowedNameservers" (list "8.8.8.8" "1.1.1.1") .parameters -}}
{{- toJson (merge (dict "allowedNameservers" (concat $allowed $set | uniq)) .parameters) -}}
{{- else -}}
{{- toJson .parameters -}}
{{- end -}}
{{- end -}}

{{/*
The parameters of the rule egress-cluster: its ranges besides those that the platform names
as the cluster's. Call with (dict "root" $ "parameters" P).
*/}}
{{- define "agent-sandbox.egressClusterParameters" -}}
{{- $ranges := concat (dig "clusterCIDRs" list .parameters) .root.Values.platform.cluster.cidrs | uniq -}}
{{- toJson (merge (dict "clusterCIDRs" $ranges) .parameters) -}}
{{- end -}}

{{/*
The parameters of the rule runtimeclass-allowed: the classes of the tiers, which admission sets,
are allowed besides its own. Call with (dict "root" $ "parameters" P).
*/}}
{{- define "agent-sandbox.runtimeClassParameters" -}}
{{- $allowed := dig "allowed" list .parameters -}}
{{- range .root.Values.platform.tiers -}}
{{- range dig "runtimeClass" "classes" list . -}}
{{- if kindIs "map" . -}}
{{- $allowed = append $allowed .name -}}
{{- else -}}
{{- $allowed = append $allowed . -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toJson (merge (dict "allowed" (uniq $allowed)) .parameters) -}}
{{- end -}}

{{/*
The parameters of the rules that know the platform's own namespace: that of the release is one of
those. Call with (dict "root" $ "parameters" P), and as "list" the name of the parameter.
*/}}
{{- define "agent-sandbox.namespaceParameters" -}}
{{- $names := dig .list (list "kube-*" "agent-sandbox-system") .parameters -}}
{{- if has .root.Release.Namespace $names -}}
{{- toJson .parameters -}}
{{- else -}}
{{- toJson (merge (dict .list (append $names .root.Release.Namespace)) .parameters) -}}
{{- end -}}
{{- end -}}
{{- define "agent-sandbox.egressNamespacesParameters" -}}
{{- include "agent-sandbox.namespaceParameters" (merge (dict "list" "protected") .) -}}
{{- end -}}
{{- define "agent-sandbox.namespaceAllowedParameters" -}}
{{- include "agent-sandbox.namespaceParameters" (merge (dict "list" "denied") .) -}}
{{- end -}}

{{/*
The parameters of the rule ingress-widened: the router as the platform names it is the peer that
is allowed besides those that are named. Call with (dict "root" $ "parameters" P).
*/}}
{{- define "agent-sandbox.ingressParameters" -}}
{{- $router := .root.Values.platform.router -}}
{{- $peer := dict
  "namespaceSelector" (dict "matchLabels" (dict "kubernetes.io/metadata.name" (default .root.Release.Namespace $router.namespace)))
  "podSelector" (dict "matchLabels" (include "agent-sandbox.stringMap" $router.podLabels | fromYaml)) -}}
{{- toJson (merge (dict "allowedPeers" (concat (list $peer) (dig "allowedPeers" list .parameters) | uniq)) .parameters) -}}
{{- end -}}

{{/*
The parameters of the rule limits-required: limits of a Pod as a whole count where the cluster keeps
them by default, unless the values say otherwise. Call with (dict "root" $ "parameters" P).
*/}}
{{- define "agent-sandbox.podLevelParameters" -}}
{{- if hasKey .parameters "podLevelResources" -}}
{{- toJson .parameters -}}
{{- else -}}
{{- toJson (set (deepCopy .parameters) "podLevelResources" (eq "true" (include "agent-sandbox.podLevelResources" .root))) -}}
{{- end -}}
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
{{- $named := dict "dns" "agent-sandbox.dnsParameters" "egress-cluster" "agent-sandbox.egressClusterParameters" "runtimeclass-allowed" "agent-sandbox.runtimeClassParameters" "egress-namespaces" "agent-sandbox.egressNamespacesParameters" "namespace-allowed" "agent-sandbox.namespaceAllowedParameters" "ingress-widened" "agent-sandbox.ingressParameters" "limits-required" "agent-sandbox.podLevelParameters" -}}
{{- with get $named $id -}}
{{- with include . (dict "root" $ "parameters" (default dict $rule.parameters)) | fromJson -}}
{{- $_ := set $rule "parameters" . -}}
{{- end -}}
{{- end -}}
{{- $_ := set $rules $id $rule -}}
{{- end -}}
{{- toYaml (dict "rules" $rules "overrides" .Values.policies.overrides "exemptions" .Values.policies.exemptions) -}}
{{- end -}}
