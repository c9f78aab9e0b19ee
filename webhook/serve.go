// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/agent-sandbox-platform/agent-sandbox/webhook/socket"
)

const (
	// timeToAnswer is how long the requests under way may take when the server stops.
	timeToAnswer = time.Minute
	// idle is how long a connection may be unused: the apiserver closes it after as long.
	idle = 90 * time.Second
	// timeToAsk is how long a client may take to send the headers of a request.
	timeToAsk = 32 * time.Second
	// again is how often a server that is to start asks whether requests can be judged.
	again = 20 * time.Millisecond
	// timeToLoad is how long it asks. Policies that take longer do not load, which those who
	// ask are told.
	timeToLoad = 20 * time.Second
)

// listening is the webhook server of controller-runtime on a socket that may be older than
// the process: that one opens its own.
type listening struct {
	ctrlwebhook.Server // has the handlers, and counts requests
	address            string
	// keeper is the path of the socket's keeper; empty for none.
	keeper  string
	certDir string
	tls     []func(*tls.Config)
	// judges says whether requests can be judged yet.
	judges  func() bool
	started atomic.Bool
}

func newListening(o *Options, tlsOptions []func(*tls.Config)) *listening {
	return &listening{
		Server:  ctrlwebhook.NewServer(ctrlwebhook.Options{}),
		address: net.JoinHostPort("", strconv.Itoa(o.Port)), keeper: o.SocketKeeper, certDir: o.CertDir, tls: tlsOptions,
		judges: func() bool { return true },
	}
}

// Start serves until ctx ends and what is under way is answered. Connections that wait at a
// socket which was kept wait on until their requests can be judged, or it is clear that they
// cannot.
func (l *listening) Start(ctx context.Context) error {
	config, err := l.tlsConfig(ctx)
	if err != nil {
		return err
	}
	listener, err := l.listen(ctx)
	if err != nil {
		return err
	}
	server := &http.Server{
		Handler: l.WebhookMux(), BaseContext: func(net.Listener) context.Context { return ctx },
		IdleTimeout: idle, ReadHeaderTimeout: timeToAsk,
	}
	answered := make(chan error, 1)
	go func() {
		<-ctx.Done()
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeToAnswer)
		defer cancel()
		answered <- server.Shutdown(last)
	}()
	// Whichever way that ends, there is an answer to give.
	_ = wait.PollUntilContextTimeout(ctx, again, timeToLoad, true, func(context.Context) (bool, error) { return l.serves(config), nil })
	l.started.Store(true)
	if err := server.Serve(tls.NewListener(listener, config)); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve on %s: %w", l.address, err)
	}
	if err := <-answered; err != nil {
		return fmt.Errorf("answer what is under way: %w", err)
	}
	return nil
}

// serves says whether there is a certificate to show, and something to judge by.
func (l *listening) serves(config *tls.Config) bool {
	certificate, err := config.GetCertificate(&tls.ClientHelloInfo{})
	return err == nil && certificate != nil && l.judges()
}

func (l *listening) listen(ctx context.Context) (net.Listener, error) {
	if l.keeper != "" {
		return socket.Listen(ctx, l.keeper, l.address, ctrl.Log.WithName("socket"))
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", l.address)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", l.address, err)
	}
	return listener, nil
}

// tlsConfig serves the certificate that is mounted unless an option has another.
func (l *listening) tlsConfig(ctx context.Context) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2"}}
	for _, option := range l.tls {
		option(config)
	}
	if config.GetCertificate != nil {
		return config, nil
	}
	watcher, err := certwatcher.New(filepath.Join(l.certDir, corev1.TLSCertKey), filepath.Join(l.certDir, corev1.TLSPrivateKeyKey))
	if err != nil {
		return nil, fmt.Errorf("read the certificate: %w", err)
	}
	config.GetCertificate = watcher.GetCertificate
	go func() {
		if err := watcher.Start(ctx); err != nil {
			ctrl.Log.WithName("certificate").Error(err, "a renewed certificate is not noticed until the next start")
		}
	}()
	return config, nil
}

// StartedChecker says whether requests are taken.
func (l *listening) StartedChecker() healthz.Checker {
	return func(*http.Request) error {
		if !l.started.Load() {
			return errors.New("the server does not listen yet")
		}
		return nil
	}
}
