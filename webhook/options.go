// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"flag"
	"os"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/agent-sandbox-platform/agent-sandbox/webhook/certs"
)

// Options are the flags of the webhook.
type Options struct {
	// Config is the path of the platform configuration.
	Config string
	// Namespace is the namespace of the release.
	Namespace string
	// Port is where admission requests are served.
	Port int
	// SocketKeeper is the path of the Unix socket of a process that keeps the one on Port
	// open while this process is away; empty for none.
	SocketKeeper string
	// CertDir is where the serving certificate of cert-manager is mounted.
	CertDir string
	// Certificates is the provider of the serving certificate.
	Certificates string
	// CertificateSecret and ServiceName are objects in Namespace.
	CertificateSecret, ServiceName string
	// MutatingWebhookName and ValidatingWebhookName are the names of the webhook
	// configurations; empty for one that is not installed.
	MutatingWebhookName, ValidatingWebhookName string
	// Lifetimes are those of certificates with the provider self.
	Lifetimes certs.Lifetimes
	// ControllerUsers are users that may do what only controllers do; without any it is
	// our controller as it is called by default.
	ControllerUsers []string
	// MetricsBindAddress and HealthProbeBindAddress are addresses such as ":8080";
	// "0" serves none.
	MetricsBindAddress, HealthProbeBindAddress string
	// DrainDelay is how long requests are still served after the signal to stop, while
	// the Service takes the replica out.
	DrainDelay time.Duration
	// MaxInFlight is how many requests are judged at the same time; further ones are
	// answered at once with 429, and clients repeat them.
	MaxInFlight int
	// DecisionLog says where decisions are logged.
	DecisionLog DecisionLogOptions
	// Version asks for the version only.
	Version bool
}

// Bind registers the flags.
func (o *Options) Bind(flags *flag.FlagSet) {
	flags.StringVar(&o.Config, "config", "/etc/agent-sandbox/platform.yaml", "Path of the platform configuration.")
	flags.StringVar(&o.Namespace, "namespace", os.Getenv("POD_NAMESPACE"), "Namespace of the release; by default that of the Pod, from POD_NAMESPACE.")
	flags.IntVar(&o.Port, "port", 9443, "Port on which admission requests are served.")
	flags.StringVar(&o.SocketKeeper, "socket-keeper", "", "Path of the Unix socket of agent-sandbox-socket, which keeps the port open while this process is away; empty for none.")
	flags.StringVar(&o.CertDir, "cert-dir", "/tmp/serving-certs", "Directory where the Secret of the serving certificate is mounted, with --certificates=cert-manager.")
	flags.StringVar(&o.Certificates, "certificates", certs.ProviderSelf, "Who provides the serving certificate: self or cert-manager.")
	flags.StringVar(&o.CertificateSecret, "certificate-secret", "agent-sandbox-webhook-cert", "Name of the Secret of the serving certificate.")
	flags.StringVar(&o.ServiceName, "service-name", "agent-sandbox-webhook", "Name of the Service through which the apiserver calls.")
	flags.StringVar(&o.MetricsBindAddress, "metrics-bind-address", ":8080", "Address of the metrics; 0 serves none.")
	flags.StringVar(&o.HealthProbeBindAddress, "health-probe-bind-address", ":8081", "Address of the probes /healthz and /readyz; 0 serves none.")
	flags.Func("controller-users",
		"Users that may do what only controllers do, separated by commas, and more of them each time it is given; by default the ServiceAccount agent-sandbox-controller of the namespace.",
		func(text string) error {
			o.ControllerUsers = append(o.ControllerUsers, strings.Split(text, ",")...)
			return nil
		})
	flags.DurationVar(&o.DrainDelay, "drain-delay", 5*time.Second, "How long requests are still served after the signal to stop.")
	flags.IntVar(&o.MaxInFlight, "max-in-flight", 200, "How many requests are judged at the same time; further ones are answered with 429, and clients repeat them.")
	flags.BoolVar(&o.Version, "version", false, "Print the version and exit.")
	o.Lifetimes = certs.DefaultLifetimes()
	flags.DurationVar(&o.Lifetimes.Overlap, "certificate-overlap", o.Lifetimes.Overlap,
		"How long each step of a rotation of the certificate waits for every apiserver and replica to have seen the one before.")
	o.DecisionLog.bind(flags)
	o.bindNames(flags)
}

func (o *Options) bindNames(flags *flag.FlagSet) {
	flags.StringVar(&o.MutatingWebhookName, "mutating-webhook-name", "agent-sandbox-webhook", "Name of the MutatingWebhookConfiguration; empty when there is none.")
	flags.StringVar(&o.ValidatingWebhookName, "validating-webhook-name", "agent-sandbox-webhook", "Name of the ValidatingWebhookConfiguration; empty when there is none.")
}

// Validate lists everything that is wrong with the flags.
func (o *Options) Validate() field.ErrorList {
	var errs field.ErrorList
	flagOf := func(name string) *field.Path { return field.NewPath("--" + name) }
	required := []struct{ name, value string }{
		{"config", o.Config}, {"namespace", o.Namespace}, {"cert-dir", o.CertDir},
		{"service-name", o.ServiceName}, {"certificate-secret", o.CertificateSecret},
	}
	for _, r := range required {
		if r.value == "" {
			errs = append(errs, field.Required(flagOf(r.name), "set the flag"))
		}
	}
	if problems := validation.IsDNS1123Label(o.Namespace); o.Namespace != "" && len(problems) > 0 {
		errs = append(errs, field.Invalid(flagOf("namespace"), o.Namespace, strings.Join(problems, "; ")))
	}
	if problems := validation.IsValidPortNum(o.Port); len(problems) > 0 {
		errs = append(errs, field.Invalid(flagOf("port"), o.Port, strings.Join(problems, "; ")))
	}
	if providers := []string{certs.ProviderSelf, certs.ProviderCertManager}; !slices.Contains(providers, o.Certificates) {
		errs = append(errs, field.NotSupported(flagOf("certificates"), o.Certificates, providers))
	}
	if o.DrainDelay < 0 {
		errs = append(errs, field.Invalid(flagOf("drain-delay"), o.DrainDelay.String(), "write a duration that is not negative"))
	}
	if o.Lifetimes.Overlap <= 0 {
		errs = append(errs, field.Invalid(flagOf("certificate-overlap"), o.Lifetimes.Overlap.String(), "write a duration above 0"))
	}
	if o.MaxInFlight < 1 {
		errs = append(errs, field.Invalid(flagOf("max-in-flight"), o.MaxInFlight, "write a number above 0"))
	}
	return append(errs, o.DecisionLog.validate()...)
}

func (o *Options) controllerUsers() sets.Set[string] {
	users := sets.New[string]()
	for _, user := range o.ControllerUsers {
		users.Insert(strings.TrimSpace(user))
	}
	if users.Delete(""); users.Len() == 0 {
		users.Insert("system:serviceaccount:" + o.Namespace + ":agent-sandbox-controller")
	}
	return users
}

func (o *Options) certificate() certs.Options {
	return certs.Options{
		Provider: o.Certificates, Namespace: o.Namespace, Secret: o.CertificateSecret, Service: o.ServiceName, Dir: o.CertDir,
		MutatingWebhook: o.MutatingWebhookName, ValidatingWebhook: o.ValidatingWebhookName,
		Lifetimes: o.Lifetimes,
	}
}
