// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Audit reads the apiserver's audit log.
type Audit struct {
	path string

	mu     sync.Mutex
	offset int64
	events []auditv1.Event
	// unanswered are the writes that were asked for and have no answer in the log yet.
	unanswered sets.Set[types.UID]
}

// Filter picks requests; an empty field picks all.
type Filter struct {
	// User is who asked, the impersonated one where there is one.
	User string
	// Namespace is where.
	Namespace string
	// Names are those of the objects. A create by a generated name has none.
	Names []string
}

// Counts are numbers of writes by verb and resource, such as "create pods" or
// "patch sandboxes/status".
type Counts map[string]int

// Total is the number of all writes.
func (c Counts) Total() int {
	total := 0
	for _, n := range c {
		total += n
	}
	return total
}

// Since is how many writes came after earlier ones were counted.
func (c Counts) Since(earlier Counts) Counts {
	since := Counts{}
	for what, n := range c {
		if more := n - earlier[what]; more > 0 {
			since[what] = more
		}
	}
	return since
}

// String lists the counts, sorted by their names.
func (c Counts) String() string {
	var lines []string
	for _, what := range slices.Sorted(maps.Keys(c)) {
		lines = append(lines, fmt.Sprintf("%4d %s", c[what], what))
	}
	return strings.Join(lines, "\n")
}

// Writes counts the writes that the filter picks, whatever the answer was. Dry runs
// and Events are left out.
func (a *Audit) Writes(filter Filter) (Counts, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.read(); err != nil {
		return nil, err
	}
	counts := Counts{}
	for i := range a.events {
		if event := &a.events[i]; filter.picks(event) {
			counts[what(event)]++
		}
	}
	return counts, nil
}

// Order lists the writes that the filter picks, named as in Counts, in the order in
// which they were done.
func (a *Audit) Order(filter Filter) ([]string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.read(); err != nil {
		return nil, err
	}
	var order []string
	for i := range a.events {
		if event := &a.events[i]; filter.picks(event) {
			order = append(order, what(event))
		}
	}
	return order, nil
}

// Turns lists the namespaces in which writes of one kind, named as in Counts, were done,
// one after the other.
func (a *Audit) Turns(filter Filter, write string) ([]string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.read(); err != nil {
		return nil, err
	}
	var turns []string
	for i := range a.events {
		if event := &a.events[i]; filter.picks(event) && what(event) == write {
			turns = append(turns, event.ObjectRef.Namespace)
		}
	}
	return turns, nil
}

// First is when the first write of those kinds, named as in Counts, was asked for; zero
// when there was none.
func (a *Audit) First(filter Filter, writes ...string) (time.Time, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.read(); err != nil {
		return time.Time{}, err
	}
	var first time.Time
	for i := range a.events {
		event := &a.events[i]
		if at := event.RequestReceivedTimestamp.Time; filter.picks(event) && slices.Contains(writes, what(event)) && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	return first, nil
}

// Settle waits until the log has everything that was answered before it was called, and
// the answers of all writes that had begun: what a write has done can be seen before.
func (a *Audit) Settle(ctx context.Context, config *rest.Config) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	marker := "/version?settle=" + rand.Text()
	if err := client.Discovery().RESTClient().Get().RequestURI(marker).Do(ctx).Error(); err != nil {
		return fmt.Errorf("ask for the marker: %w", err)
	}
	var begun sets.Set[types.UID]
	return wait.PollUntilContextTimeout(ctx, pollInterval, startPatience, true, func(context.Context) (bool, error) {
		a.mu.Lock()
		defer a.mu.Unlock()
		if err := a.read(); err != nil {
			return false, err
		}
		if begun == nil && slices.ContainsFunc(a.events, func(e auditv1.Event) bool { return e.RequestURI == marker }) {
			begun = a.unanswered.Clone()
		}
		return begun != nil && a.unanswered.Intersection(begun).Len() == 0, nil
	})
}

// read takes in the lines that came since it was last called.
func (a *Audit) read() error {
	file, err := os.Open(a.path)
	if err != nil {
		return fmt.Errorf("audit log: %w", err)
	}
	defer func() { _ = file.Close() }() // it was only read
	if _, err := file.Seek(a.offset, io.SeekStart); err != nil {
		return fmt.Errorf("audit log: %w", err)
	}
	reader := bufio.NewReader(file)
	for {
		line, err := reader.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil // half a line is read again when it is whole
		}
		if err != nil {
			return fmt.Errorf("audit log: %w", err)
		}
		a.offset += int64(len(line))
		var event auditv1.Event
		if err := json.Unmarshal(bytes.TrimSpace(line), &event); err != nil {
			return fmt.Errorf("audit log: %w", err)
		}
		a.take(&event)
	}
}

// take takes in one event.
func (a *Audit) take(event *auditv1.Event) {
	if isWrite(event) {
		if a.unanswered == nil {
			a.unanswered = sets.New[types.UID]()
		}
		if event.Stage == auditv1.StageRequestReceived {
			a.unanswered.Insert(event.AuditID)
			return
		}
		a.unanswered.Delete(event.AuditID)
	}
	if event.Stage == auditv1.StageResponseComplete && (isWrite(event) || event.ObjectRef == nil) {
		a.events = append(a.events, *event)
	}
}

func isWrite(event *auditv1.Event) bool {
	return event.ObjectRef != nil && event.ObjectRef.Resource != "events" &&
		slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, event.Verb) &&
		!strings.Contains(event.RequestURI, "dryRun=All")
}

func (f Filter) picks(event *auditv1.Event) bool {
	if !isWrite(event) {
		return false
	}
	user := event.User.Username
	if event.ImpersonatedUser != nil {
		user = event.ImpersonatedUser.Username
	}
	return (f.User == "" || f.User == user) &&
		(f.Namespace == "" || f.Namespace == event.ObjectRef.Namespace) &&
		(len(f.Names) == 0 || slices.Contains(f.Names, event.ObjectRef.Name))
}

// what names a write; one that was refused says so by its code.
func what(event *auditv1.Event) string {
	name := event.Verb + " " + event.ObjectRef.Resource
	if event.ObjectRef.Subresource != "" {
		name += "/" + event.ObjectRef.Subresource
	}
	if event.ResponseStatus != nil && event.ResponseStatus.Code >= http.StatusBadRequest {
		name += fmt.Sprintf(" (%d)", event.ResponseStatus.Code)
	}
	return name
}
