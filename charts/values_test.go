// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// environments are the values files of the chart; the first is the defaults alone.
var environments = []string{"", "dev", "staging", "prod"}

func (in install) with(env string) install {
	if env != "" {
		in.files = []string{env}
	}
	return in
}

func TestEveryEnvironmentRenders(t *testing.T) {
	files, err := filepath.Glob(chartDir + "/values-*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != len(environments)-1 {
		t.Errorf("the chart has %v, the tests know %v", files, environments[1:])
	}
	for _, env := range environments {
		t.Run("values of "+or(env, "defaults"), func(t *testing.T) {
			r := render(t, install{withCRDs: true}.with(env))
			if got := kinds(r)["CustomResourceDefinition"]; got != 4 {
				t.Errorf("%d definitions, want 4", got)
			}
		})
	}
}

// A tier need not say more than the schema asks for.
func TestATierThatSaysWhatItHasToIsEnough(t *testing.T) {
	r := render(t, install{set: []string{
		"platform.tiers.least.podSecurity.deny=baseline", "platform.tiers.least.podSecurity.version=v1.37",
		"platform.tiers.least.egress.profile=none", "platform.tiers.least.creates={Sandbox}",
	}})
	for _, c := range all[*corev1.ConfigMap](r) {
		if text, is := c.Data["platform.yaml"]; is && !strings.Contains(text, "least:") {
			t.Errorf("the configuration has no such tier:\n%s", text)
		}
	}
}

func TestValuesThatAreRefused(t *testing.T) {
	cases := map[string]struct {
		set, setString []string
		want           []string
	}{
		"a typo at the top":               {set: []string{"controler.replicas=1"}, want: []string{"controler", "not allowed"}},
		"a typo below":                    {set: []string{"controller.replcas=1"}, want: []string{"/controller", "replcas"}},
		"a typo deep below":               {set: []string{"platform.tiers.standard.podSecurity.dany=x"}, want: []string{"podSecurity", "dany"}},
		"a mode that is none":             {set: []string{"platform.tiers.standard.hardening.seccomp=Off"}, want: []string{"hardening/seccomp", "Require"}},
		"a ceiling of another resource":   {set: []string{"platform.tiers.standard.resources.max.gpu=1"}, want: []string{"resources/max", "gpu"}},
		"a lifetime without a unit":       {set: []string{"platform.tiers.standard.maxLifetime=24"}, want: []string{"maxLifetime"}},
		"a typo in the definitions":       {set: []string{"crds.kep=true"}, want: []string{"/crds", "kep"}},
		"a typo in a rule":                {set: []string{"policies.rules.hostpath.enforcment=Deny"}, want: []string{"hostpath", "enforcment"}},
		"an enforcement that is none":     {set: []string{"policies.rules.hostpath.enforcement=deny"}, want: []string{"hostpath/enforcement", "Deny"}},
		"the text false as a switch":      {setString: []string{"rbac.aggregateClusterRoles=false"}, want: []string{"aggregateClusterRoles", "want boolean"}},
		"the text false for definitions":  {setString: []string{"crds.keep=false"}, want: []string{"/crds/keep", "want boolean"}},
		"no replica of the controller":    {set: []string{"controller.replicas=0"}, want: []string{"/controller/replicas", "want 1"}},
		"no replica of the webhook":       {set: []string{"webhook.replicas=0"}, want: []string{"/webhook/replicas", "want 1"}},
		"replicas as text":                {set: []string{"webhook.replicas=abc"}, want: []string{"/webhook/replicas", "want integer"}},
		"a tag that is a number":          {set: []string{"image.tag=123456789"}, want: []string{"/image/tag", "want string"}},
		"a digest that is none":           {set: []string{"webhook.image.digest=latest"}, want: []string{"/webhook/image/digest"}},
		"a failure policy in small":       {set: []string{"webhook.validating.failurePolicy=fail"}, want: []string{"/webhook/validating/failurePolicy", "Fail"}},
		"a provider that does not exist":  {set: []string{"certificates.provider=vault"}, want: []string{"/certificates/provider", "cert-manager"}},
		"an argument that is no flag":     {set: []string{"webhook.extraArgs={cleanup}"}, want: []string{"/webhook/extraArgs/0"}},
		"a module that is no Rego":        {set: []string{`policies.modules.mine\.txt=x`}, want: []string{"/policies/modules", "mine.txt"}},
		"a default tier that is none":     {set: []string{"platform.defaultTier=lax"}, want: []string{"platform.defaultTier", `"lax"`, "restricted, standard, trusted"}},
		"an egress profile that is none":  {set: []string{"platform.tiers.trusted.egress.profile=all"}, want: []string{"platform.tiers.trusted.egress", `"all"`, "dns-only, none, public"}},
		"an allowed profile that is none": {set: []string{"platform.tiers.trusted.egress.allowed={all}"}, want: []string{"platform.tiers.trusted.egress", `"all"`}},
		"a router without labels":         {set: []string{"platform.router.podLabels=null"}, want: []string{"router"}},
		"monitors without their kind":     {set: []string{"metrics.serviceMonitor.enabled=true"}, want: []string{"ServiceMonitor", "metrics.serviceMonitor.force"}},
		"alerts without their kind":       {set: []string{"metrics.prometheusRule.enabled=true"}, want: []string{"PrometheusRule", "metrics.prometheusRule.force"}},
		"a log in a file":                 {set: []string{"webhook.decisionLog.destination=/var/log/decisions"}, want: []string{"/webhook/decisionLog/destination"}},
		"a log that is neither":           {set: []string{"webhook.decisionLog.destination=stderr"}, want: []string{"/webhook/decisionLog/destination", "stderr"}},
		"a sample above all":              {set: []string{"webhook.decisionLog.sample=2"}, want: []string{"/webhook/decisionLog/sample"}},
		"an override without a name":      {set: []string{"policies.overrides[0].rules.dra.enforcement=Warn"}, want: []string{"/policies/overrides/0", "name"}},
		"more resolvers than a Pod takes": {set: []string{"platform.egressProfiles.none.nameservers={10.0.0.1,10.0.0.2,10.0.0.3,10.0.0.4}"}, want: []string{"/platform/egressProfiles/none/nameservers"}},
		"an audit without a pause":        {set: []string{"audit.interval=59s"}, want: []string{"audit.interval is 59s", "1m"}},
		"an audit a few times a second":   {set: []string{"audit.interval=100ms"}, want: []string{"audit.interval is 100ms"}},
		"an exemption without an end":     {set: []string{"policies.exemptions[0].rule=dra"}, want: []string{"/policies/exemptions/0", "expires"}},
		"a drain that cuts off requests":  {set: []string{"webhook.drainSeconds=26"}, want: []string{"webhook.drainSeconds is 26 and webhook.timeoutSeconds 5", "30"}},
		"a timeout that does":             {set: []string{"webhook.timeoutSeconds=26"}, want: []string{"webhook.timeoutSeconds 26"}},
		"two users as one":                {set: []string{`admission.controllerUsers={a\,b}`}, want: []string{"/admission/controllerUsers/0"}},
		"a user without a name":           {setString: []string{"admission.controllerUsers[0]="}, want: []string{"/admission/controllerUsers/0"}},
		"fewer replicas than the least":   {set: []string{"webhook.autoscaling.enabled=true", "webhook.autoscaling.minReplicas=9"}, want: []string{"minReplicas is 9"}},
		"an issuer that nobody asks":      {set: []string{"certificates.certManager.issuerRef.name=ca"}, want: []string{"issuerRef", "set it to cert-manager"}},
		"an issuer without a name":        {set: []string{"certificates.provider=cert-manager", "certificates.certManager.issuerRef.kind=Issuer"}, want: []string{"issuerRef", "name"}},
		"a wait that is no duration":      {set: []string{"claims.coldStartAfter=soon"}, want: []string{"/claims/coldStartAfter", "soon"}},
		"a domain that is none":           {set: []string{"claims.labelDomains={Team!}"}, want: []string{"/claims/labelDomains/0", "Team!"}},
		"no domain at all":                {set: []string{"claims.labelDomains={}"}, want: []string{"/claims/labelDomains"}},
		"no worker":                       {set: []string{"controller.workers.claims=0"}, want: []string{"/controller/workers/claims", "want 1"}},
		"a name that is no label":         {set: []string{"fullnameOverride=My_Release"}, want: []string{"/fullnameOverride"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			wantFailure(t, install{set: tc.set, setString: tc.setString}, tc.want...)
		})
	}
}

// An empty map cannot be written as an argument.
func TestAnOverrideOfNoRuleIsRefused(t *testing.T) {
	_, err := install{}.tryValues(map[string]any{"policies": map[string]any{"overrides": []any{map[string]any{
		"name": "a", "namespaceSelector": map[string]any{"matchLabels": map[string]any{"a": "b"}}, "rules": map[string]any{},
	}}}})
	if err == nil || !strings.Contains(err.Error(), "/policies/overrides/0/rules") {
		t.Errorf("rendered, or failed with %v", err)
	}
}

// A replica that stops has the time to answer what came to it last, to the second.
func TestTheLongestDrain(t *testing.T) {
	for _, set := range [][]string{{"webhook.drainSeconds=25"}, {"webhook.timeoutSeconds=25"}} {
		render(t, install{set: set})
	}
}

func TestClustersThatAreTooOld(t *testing.T) {
	wantFailure(t, install{kubeVersion: "v1.30.9"}, ">=1.31.0-0", "v1.30.9")
	for _, version := range []string{"v1.31.0", "v1.32.4-gke.100", "v1.33.0-eks-1234", kubeVersion} {
		render(t, install{kubeVersion: version})
	}
}

// A chart that includes ours gives it global values, and may switch it by "enabled".
func TestAsASubchart(t *testing.T) {
	ours, err := loader.LoadDir(chartDir)
	if err != nil {
		t.Fatal(err)
	}
	parent := &chart.Chart{Metadata: &chart.Metadata{APIVersion: chart.APIVersionV2, Name: "platform", Version: "1.0.0"}}
	parent.SetDependencies(ours)
	given := map[string]any{
		"global":        map[string]any{"imageRegistry": "registry.example.com", "storageClass": "fast"},
		"agent-sandbox": map[string]any{"enabled": true, "crds": map[string]any{"enabled": true}},
	}
	caps := chartutil.DefaultCapabilities.Copy()
	version, err := chartutil.ParseKubeVersion(kubeVersion)
	if err != nil {
		t.Fatal(err)
	}
	caps.KubeVersion = *version
	if _, err := chartutil.ToRenderValues(parent, given, chartutil.ReleaseOptions{Name: "p", Namespace: "p"}, caps); err != nil {
		t.Errorf("values of a parent are refused: %v", err)
	}
}

// A draft-07 schema that refers to another is that one alone: what stands beside is ignored.
func TestNothingStandsBesideAReference(t *testing.T) {
	eachSchema(t, func(file string, schema map[string]any) {
		walkSchema("", schema, func(path string, node map[string]any) {
			if reference, is := node["$ref"].(string); is && len(node) > 1 {
				t.Errorf("%s: %s has more than its reference to %s", file, path, reference)
			}
		})
	})
}

// Every object of the schema that has fixed properties is closed; only the ones below
// are maps on purpose, or are Kubernetes' own and judged by the apiserver.
func TestTheSchemaIsClosed(t *testing.T) {
	open := map[string]bool{
		"/properties/global":      true,
		"/properties/crds/global": true,
		"/definitions/someLabels": true,
	}
	eachSchema(t, func(file string, schema map[string]any) {
		walkSchema("", schema, func(path string, node map[string]any) {
			_, fixed := node["properties"]
			_, closed := node["additionalProperties"]
			if fixed && !closed && !open[path] {
				t.Errorf("%s: %s takes keys that nobody knows", file, or(path, "the top"))
			}
		})
	})
}

func eachSchema(t *testing.T, visit func(file string, schema map[string]any)) {
	t.Helper()
	for _, file := range []string{"values.schema.json", "charts/crds/values.schema.json"} {
		data, err := os.ReadFile(filepath.Join(chartDir, file))
		if err != nil {
			t.Fatal(err)
		}
		var schema map[string]any
		if err := json.Unmarshal(data, &schema); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		visit(file, schema)
	}
}

func walkSchema(path string, node any, visit func(string, map[string]any)) {
	switch typed := node.(type) {
	case map[string]any:
		visit(path, typed)
		for key, child := range typed {
			walkSchema(path+"/"+key, child, visit)
		}
	case []any:
		for _, child := range typed {
			walkSchema(path+"/-", child, visit)
		}
	}
}

// Each value that the chart has is one that the schema names, so that a value that is
// added to one of them is added to both.
func TestTheSchemaNamesEveryValue(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(chartDir, "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var given map[string]any
	if err := yaml.UnmarshalStrict(data, &given); err != nil {
		t.Fatalf("values.yaml: %v", err)
	}
	schema, err := os.ReadFile(filepath.Join(chartDir, "values.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	var top struct {
		Properties map[string]struct {
			Properties map[string]any `json:"properties"`
		} `json:"properties"`
	}
	if err := json.Unmarshal(schema, &top); err != nil {
		t.Fatal(err)
	}
	injected := map[string]bool{"enabled": true, "global": true}
	for name, property := range top.Properties {
		value, ok := given[name]
		if !ok && !injected[name] {
			t.Errorf("the schema names %s, values.yaml does not", name)
		}
		section, _ := value.(map[string]any)
		for below := range property.Properties {
			if _, ok := section[below]; !ok && !injected[below] {
				t.Errorf("the schema names %s.%s, values.yaml does not", name, below)
			}
		}
	}
}

// A whole number in YAML reaches a template as a float, which prints as 1e+06.
func TestLargeNumbersAreWrittenOut(t *testing.T) {
	for _, number := range []string{"1000000", "2147483642"} {
		given := map[string]any{}
		text := strings.ReplaceAll(`
crds: {install: false}
controller: {replicas: N, terminationGracePeriodSeconds: N, revisionHistoryLimit: N, podLabels: {build: N}, nodeSelector: {pool: N}}
webhook: {terminationGracePeriodSeconds: 2147483647, drainSeconds: N, podAnnotations: {build: N}, autoscaling: {enabled: true, minReplicas: N, maxReplicas: N}}
cleanup: {activeDeadlineSeconds: N}
platform: {environment: {budget: N}}
policies: {rules: {limits-required: {parameters: {most: N}}}}
`, "N", number)
		if err := yaml.Unmarshal([]byte(text), &given); err != nil {
			t.Fatal(err)
		}
		r, err := install{}.tryValues(given)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range r.objects {
			if strings.Contains(o.text, "e+0") {
				t.Errorf("%s: a number has an exponent:\n%s", o, o.text)
			}
		}
		if got := strings.Count(r.Manifest, number); got != 11 {
			t.Errorf("%s stands %d times in the manifest, want 11", number, got)
		}
		if strings.Contains(r.Info.Notes, "e+0") {
			t.Errorf("a number in the notes has an exponent:\n%s", r.Info.Notes)
		}
	}
}
