// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

func TestOptionsValidate(t *testing.T) {
	cases := map[string]struct {
		args []string
		// want is the whole error; empty for none.
		want string
	}{
		"the defaults with a namespace":   {[]string{"--namespace=a"}, ""},
		"no namespace":                    {[]string{"--namespace="}, "--namespace: Required value: set the flag"},
		"a provider that does not exist":  {[]string{"--namespace=a", "--certificates=me"}, `--certificates: Unsupported value: "me": supported values: "self", "cert-manager"`},
		"a port beyond the last":          {[]string{"--namespace=a", "--port=65536"}, "--port: Invalid value: 65536: must be between 1 and 65535, inclusive"},
		"a delay that lies in the past":   {[]string{"--namespace=a", "--drain-delay=-1s"}, `--drain-delay: Invalid value: "-1s": write a duration that is not negative`},
		"no request at the same time":     {[]string{"--namespace=a", "--max-in-flight=0"}, "--max-in-flight: Invalid value: 0: write a number above 0"},
		"a webhook that is not installed": {[]string{"--namespace=a", "--mutating-webhook-name="}, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var o Options
			flags := flag.NewFlagSet("", flag.ContinueOnError)
			o.Bind(flags)
			if err := flags.Parse(tc.args); err != nil {
				t.Fatal(err)
			}
			got := ""
			if err := o.Validate().ToAggregate(); err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("Validate() = %q, want %q", got, tc.want)
			}
		})
	}
}

func TestControllerUsers(t *testing.T) {
	cases := map[string]struct{ args, want []string }{
		"none are our own":              {nil, []string{"system:serviceaccount:ns:agent-sandbox-controller"}},
		"none in a list are our own":    {[]string{"--controller-users= ,"}, []string{"system:serviceaccount:ns:agent-sandbox-controller"}},
		"several in a list":             {[]string{"--controller-users=a, b,"}, []string{"a", "b"}},
		"more that are given elsewhere": {[]string{"--controller-users=a,b", "--controller-users=c"}, []string{"a", "b", "c"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o, flags := Options{}, flag.NewFlagSet("webhook", flag.ContinueOnError)
			o.Bind(flags)
			if err := flags.Parse(append([]string{"--namespace=ns"}, tc.args...)); err != nil {
				t.Fatal(err)
			}
			if got := sets.List(o.controllerUsers()); !slices.Equal(got, tc.want) {
				t.Errorf("users are %v, want %v", got, tc.want)
			}
		})
	}
}

func TestMainSaysWhatIsWrongInOneLine(t *testing.T) {
	for name, args := range map[string][]string{
		"an unknown flag":     {"--no-such-flag"},
		"an unknown argument": {"clean"},
		"of the cleanup":      {"cleanup", "--port=1"},
	} {
		var out bytes.Buffer
		err := Main(t.Context(), args, &out)
		if err == nil || strings.Contains(err.Error(), "\n") || out.Len() > 0 {
			t.Errorf("%s: error %v and output %q, want one line of error only", name, err, out.String())
		}
	}
	var out bytes.Buffer
	if err := Main(t.Context(), []string{"clean"}, &out); err == nil || !strings.Contains(err.Error(), "cleanup, preflight, preflight-probe, preflight-serve") {
		t.Errorf("an unknown argument: error %v, want it to name the commands", err)
	}
	if err := Main(t.Context(), []string{"--help"}, &out); err != nil || !strings.Contains(out.String(), "-certificate-secret") {
		t.Errorf("--help: error %v and output %q, want the flags", err, out.String())
	}
	out.Reset()
	if err := Main(t.Context(), []string{"--version"}, &out); err != nil || strings.Count(out.String(), "\n") != 1 {
		t.Errorf("--version: error %v and output %q, want one line", err, out.String())
	}
}

func TestCleanup(t *testing.T) {
	mutating := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "m"}}
	foreign := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "foreign"}}
	c := fake.NewClientBuilder().WithObjects(mutating, foreign).Build()
	var out bytes.Buffer
	if err := Cleanup(t.Context(), c, Options{MutatingWebhookName: "m", ValidatingWebhookName: "v"}, &out); err != nil {
		t.Fatal(err)
	}
	want := "MutatingWebhookConfiguration \"m\": deleted\nValidatingWebhookConfiguration \"v\": was not there\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(foreign), foreign); err != nil {
		t.Errorf("the configuration of somebody else: %v", err)
	}
}

func TestCleanupGoesOnAfterAnError(t *testing.T) {
	refused := errors.New("refused")
	var asked int
	c := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error {
			asked++
			return refused
		},
	}).Build()
	err := Cleanup(t.Context(), c, Options{MutatingWebhookName: "m", ValidatingWebhookName: "v"}, &bytes.Buffer{})
	if !errors.Is(err, refused) || asked != 2 {
		t.Errorf("Cleanup() = %v after %d deletions, want the error after 2", err, asked)
	}
}
