// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"flag"
	"fmt"
	"regexp"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/agent-sandbox-platform/agent-sandbox/cmd/agent-sandbox-controller/app"
	"github.com/agent-sandbox-platform/agent-sandbox/webhook"
)

// A flag that a program does not know stops it at its start.
func TestProgramsKnowTheirFlags(t *testing.T) {
	for _, set := range [][]string{
		nil, everything, {"metrics.enabled=false"}, {"controller.extensions=false"},
		{"audit.interval=1m"}, {"audit.interval=0s"}, {"audit.interval=30s", "audit.enabled=false"},
	} {
		in := elsewhere
		in.set = set
		r := render(t, in)
		var served webhook.Options
		parseArgs(t, r, "q7-blue-webhook", served.Bind)
		served.Namespace = in.namespace
		if errs := served.Validate(); len(errs) > 0 {
			t.Errorf("the webhook refuses its arguments: %v", errs)
		}
		var run app.Options
		parseArgs(t, r, "q7-blue-controller", run.Bind)
		if err := run.Validate(); err != nil {
			t.Errorf("the controller refuses its arguments: %v", err)
		}
	}
}

// The controller judges in the namespaces in which admission does.
func TestWhatIsStoredIsJudgedWhereAdmissionJudges(t *testing.T) {
	in := elsewhere
	in.set = []string{"webhook.exemptNamespaces={x,y}"}
	for i, expression := range []string{"key=a.b/c,operator=DoesNotExist", "key=d,operator=Exists", "key=e,operator=In,values={f,g}", "key=h,operator=NotIn,values={i}"} {
		for _, part := range regexp.MustCompile(`(\w+)=(\{.*\}|[^,]+)`).FindAllString(expression, -1) {
			in.set = append(in.set, fmt.Sprintf("webhook.namespaceMatchExpressions[%d].%s", i, part))
		}
	}
	r := render(t, in)
	var run app.Options
	parseArgs(t, r, "q7-blue-controller", run.Bind)
	got, err := labels.Parse(run.Audit.Judged)
	if err != nil {
		t.Fatal(err)
	}
	want, err := metav1.LabelSelectorAsSelector(webhooks(t, r).validate.NamespaceSelector)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != want.String() {
		t.Errorf("the audit judges %q, admission judges %q", got, want)
	}
}

func parseArgs(t *testing.T, r rendered, deployment string, bind func(*flag.FlagSet)) {
	t.Helper()
	flags := flag.NewFlagSet(deployment, flag.ContinueOnError)
	bind(flags)
	args := named[*appsv1.Deployment](t, r, deployment).Spec.Template.Spec.Containers[0].Args
	if err := flags.Parse(args); err != nil || flags.NArg() > 0 {
		t.Errorf("%s does not know its arguments %q: %v", deployment, args, err)
	}
}
