// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package claim

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/lookup"
)

// sightings are which generation of the pool its controller had been shown when it asked for
// a member, by the member's name: it asks for no more than that generation or one before it
// wants.
type sightings struct {
	mu    sync.Mutex
	shown map[string]int64
}

func (s *sightings) all() map[string]int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.shown)
}

// sighting is the connection of one controller, which is shown of the pool what its cache has.
type sighting struct {
	*sightings

	cache client.Reader
	key   client.ObjectKey
	next  http.RoundTripper
}

// Wrap suits apiserver.Setup.
func (s *sighting) Wrap(next http.RoundTripper) http.RoundTripper {
	s.next = next
	return s
}

// RoundTrip implements http.RoundTripper.
func (s *sighting) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method == http.MethodPost && strings.HasSuffix(request.URL.Path, "/sandboxes") {
		if err := s.note(request); err != nil {
			return nil, err
		}
	}
	return s.next.RoundTrip(request)
}

// note notes what is shown now. A request that is repeated counts as it was last: by
// then more may be wanted.
func (s *sighting) note(request *http.Request) error {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return err
	}
	request.Body = io.NopCloser(bytes.NewReader(body))
	var member metav1.PartialObjectMetadata
	if err := json.Unmarshal(body, &member); err != nil {
		return err
	}
	p := &pool{}
	if err := s.cache.Get(request.Context(), s.key, p, lookup.Glance); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shown[member.Name] = p.Generation
	return nil
}
