// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// listener is an apiserver that remembers which connections it was asked on.
type listener struct {
	*httptest.Server

	mu                sync.Mutex
	watches, requests sets.Set[string]
}

func newListener(t *testing.T) *listener {
	t.Helper()
	l := &listener{watches: sets.New[string](), requests: sets.New[string]()}
	ended := make(chan struct{})
	l.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		watches := r.URL.Query().Get("watch") == "true"
		l.note(watches, r.RemoteAddr)
		w.WriteHeader(http.StatusOK)
		if watches {
			_ = http.NewResponseController(w).Flush() // the client says so when it fails
			<-ended
		}
	}))
	l.EnableHTTP2 = true
	l.StartTLS()
	t.Cleanup(l.Close)
	t.Cleanup(func() { close(ended) })
	return l
}

func (l *listener) note(watches bool, connection string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if watches {
		l.watches.Insert(connection)
	} else {
		l.requests.Insert(connection)
	}
}

// config is what the controller connects to it with.
func (l *listener) config(t *testing.T, options ConnectionOptions) *rest.Config {
	t.Helper()
	file := clientcmdapi.NewConfig()
	file.Clusters["c"] = &clientcmdapi.Cluster{
		Server: l.URL, CertificateAuthorityData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: l.Certificate().Raw}),
	}
	file.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: "token"}
	file.Contexts["c"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	file.CurrentContext = "c"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*file, path); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", path)
	config, err := connect(Options{Connections: options})
	if err != nil {
		t.Fatal(err)
	}
	return config
}

func ask(t *testing.T, client *http.Client, url string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = response.Body.Close() }) // a watch goes on until then
}

// However many clients are made of the configuration, as the manager, its caches and the
// election of the leader do, they share the connections that were asked for.
func TestConnectionsToTheApiserver(t *testing.T) {
	cases := map[string]struct {
		options ConnectionOptions
		// requests and all are how many connections carry requests and anything.
		requests, all int
	}{
		"everything shares one by default":          {ConnectionOptions{Requests: 1}, 1, 1},
		"watches have one of their own":             {ConnectionOptions{Requests: 1, SeparateWatches: true}, 1, 2},
		"requests take turns, and watches are with": {ConnectionOptions{Requests: 3}, 3, 3},
		"requests take turns beside watches":        {ConnectionOptions{Requests: 3, SeparateWatches: true}, 3, 4},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			server := newListener(t)
			config := server.config(t, tc.options)
			for range 2 {
				client, err := rest.HTTPClientFor(config)
				if err != nil {
					t.Fatal(err)
				}
				for range 4 {
					ask(t, client, server.URL+"/api/v1/pods?watch=true")
					ask(t, client, server.URL+"/api/v1/pods")
				}
			}
			if got := server.requests.Len(); got != tc.requests {
				t.Errorf("requests came on %d connections, want %d", got, tc.requests)
			}
			if got := server.watches.Len(); got != 1 {
				t.Errorf("watches came on %d connections, want one", got)
			}
			if got := server.watches.Union(server.requests).Len(); got != tc.all {
				t.Errorf("there were %d connections, want %d", got, tc.all)
			}
		})
	}
}
