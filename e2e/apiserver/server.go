// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

const (
	pollInterval = 50 * time.Millisecond
	// startPatience bounds a start on a busy machine; an idle one takes seconds.
	startPatience = time.Minute
	// attempts at a start: somebody may take a port that was free.
	attempts = 3
)

const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
rules:
  - {level: Metadata, verbs: [create, update, patch, delete, deletecollection]}
  - {level: Metadata, omitStages: [RequestReceived]}
`

// Options change how a Server is started. The zero value is what tests want.
type Options struct {
	// NoFsync lets etcd skip the flush after each write. Figures of time are then worth
	// even less.
	NoFsync bool
	// Product is the controller that is tested; nil for the platform's.
	Product *Product
}

// Server is a running apiserver.
type Server struct {
	// Config is the connection of an administrator.
	Config *rest.Config
	// Audit reads what was asked of the apiserver.
	Audit *Audit

	dir string
	// token is the administrator's.
	token           string
	etcd, apiserver *Daemon
	product         *Product
	// shipped is the controller once it is built.
	shipped *Shipped
	// helpers are what AddNodes started.
	helpers []*Daemon
}

// Start starts etcd and the apiserver and installs what the product needs.
// The caller stops it.
func Start(ctx context.Context, options Options) (*Server, error) {
	programs := map[string]string{}
	for _, name := range []string{"etcd", "kube-apiserver"} {
		path, err := Program(ctx, name)
		if err != nil {
			return nil, err
		}
		programs[name] = path
	}
	if options.Product == nil {
		own, err := Own()
		if err != nil {
			return nil, err
		}
		options.Product = own
	}
	var failures []error
	for range attempts {
		server, err := start(ctx, options, programs)
		if err == nil {
			return server, nil
		}
		failures = append(failures, err)
	}
	return nil, errors.Join(failures...)
}

func start(ctx context.Context, options Options, programs map[string]string) (*Server, error) {
	dir, err := os.MkdirTemp("", "agent-sandbox-apiserver-")
	if err != nil {
		return nil, fmt.Errorf("folder of the apiserver: %w", err)
	}
	s := &Server{dir: dir, token: rand.Text(), product: options.Product, Audit: &Audit{path: filepath.Join(dir, "audit.log")}}
	if err := s.run(ctx, options, programs); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

func (s *Server) run(ctx context.Context, options Options, programs map[string]string) error {
	if err := s.writeFiles(); err != nil {
		return err
	}
	ports, err := FreePorts(ctx, 3)
	if err != nil {
		return err
	}
	etcdURL, peerURL, securePort := "http://127.0.0.1:"+ports[0], "http://127.0.0.1:"+ports[1], ports[2]
	etcdArgs := []string{
		"--name=default", "--data-dir=" + s.in("etcd"), "--log-level=warn",
		"--listen-client-urls=" + etcdURL, "--advertise-client-urls=" + etcdURL,
		"--listen-peer-urls=" + peerURL, "--initial-advertise-peer-urls=" + peerURL, "--initial-cluster=default=" + peerURL,
	}
	if options.NoFsync {
		etcdArgs = append(etcdArgs, "--unsafe-no-fsync")
	}
	if s.etcd, err = Launch("etcd", programs["etcd"], s.in("etcd.log"), etcdArgs...); err != nil {
		return err
	}
	s.apiserver, err = Launch("kube-apiserver", programs["kube-apiserver"], s.in("apiserver.log"), s.apiserverArgs(etcdURL, securePort)...)
	if err != nil {
		return err
	}
	s.Config = &rest.Config{
		Host: "https://127.0.0.1:" + securePort, BearerToken: s.token,
		TLSClientConfig: rest.TLSClientConfig{CAFile: s.in("pki", "apiserver.crt"), ServerName: "kubernetes"},
		QPS:             -1,
		WarningHandler:  rest.NoWarnings{},
	}
	if err := s.awaitReady(ctx); err != nil {
		return err
	}
	return install(ctx, s.Config, s.product)
}

func (s *Server) apiserverArgs(etcdURL, securePort string) []string {
	return []string{
		"--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", "--secure-port=" + securePort,
		"--cert-dir=" + s.in("pki"), "--etcd-servers=" + etcdURL,
		"--token-auth-file=" + s.in("tokens.csv"), "--authorization-mode=RBAC", "--anonymous-auth=false",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + s.in("service-account.key"),
		"--service-account-signing-key-file=" + s.in("service-account.key"),
		"--service-cluster-ip-range=10.96.0.0/16", "--endpoint-reconciler-type=none", "--allow-privileged",
		// Nobody makes ServiceAccounts or takes the protection off volume claims here.
		"--disable-admission-plugins=ServiceAccount,StorageObjectInUseProtection",
		"--enable-admission-plugins=OwnerReferencesPermissionEnforcement",
		"--audit-policy-file=" + s.in("audit.yaml"), "--audit-log-path=" + s.in("audit.log"),
		"--audit-log-mode=blocking", "--audit-log-maxsize=4096", "--audit-log-maxbackup=1",
	}
}

func (s *Server) writeFiles() error {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return fmt.Errorf("key of ServiceAccounts: %w", err)
	}
	for name, content := range map[string][]byte{
		"tokens.csv": []byte(s.token + ",admin,admin,system:masters\n"),
		"audit.yaml": []byte(auditPolicy),
		"service-account.key": pem.EncodeToMemory(&pem.Block{
			Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key),
		}),
	} {
		if err := os.WriteFile(s.in(name), content, 0o600); err != nil {
			return fmt.Errorf("files of the apiserver: %w", err)
		}
	}
	return nil
}

func (s *Server) awaitReady(ctx context.Context) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, pollInterval, startPatience, true, func(ctx context.Context) (bool, error) {
		if err := s.Failure(); err != nil {
			return false, err
		}
		last = s.ready(ctx)
		return last == nil, nil
	})
	if wait.Interrupted(err) {
		return fmt.Errorf("the apiserver did not become ready: %w", last)
	}
	return err
}

// ready makes a new client each time: the certificate comes with the start.
func (s *Server) ready(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(s.Config)
	if err != nil {
		return err
	}
	return client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
}

// As is the connection of a user who has the groups and what they allow him.
func (s *Server) As(user string, groups ...string) *rest.Config {
	config := rest.CopyConfig(s.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups}
	return config
}

// Kubeconfig writes a file with the connection of As and returns its path.
func (s *Server) Kubeconfig(user, group string) (string, error) {
	// KUBECONFIG may list several files, with colons between them.
	path := s.in(strings.ReplaceAll(user, ":", "-") + ".kubeconfig")
	content := fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: %q, certificate-authority: %q, tls-server-name: kubernetes}}]
users: [{name: u, user: {token: %q, as: %q, as-groups: [%q]}}]
`, s.Config.Host, s.Config.CAFile, s.token, user, group)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		return "", fmt.Errorf("write kubeconfig: %w", err)
	}
	return path, nil
}

// Stop ends the processes and removes their files.
func (s *Server) Stop() error {
	var errs []error
	for _, helper := range s.helpers {
		errs = append(errs, helper.Stop())
	}
	return errors.Join(errors.Join(errs...), s.apiserver.Stop(), s.etcd.Stop(), os.RemoveAll(s.dir))
}

// CPU is how much processor time the apiserver has used since it was started.
func (s *Server) CPU() (time.Duration, error) { return s.apiserver.CPU() }

func (s *Server) in(elem ...string) string {
	return filepath.Join(append([]string{s.dir}, elem...)...)
}
