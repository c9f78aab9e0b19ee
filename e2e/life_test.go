// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/bench"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/kit"
	"github.com/agent-sandbox-platform/agent-sandbox/webhook/certs"
)

const (
	// pace makes fifty requests a second.
	pace = 20 * time.Millisecond
	// outstanding is how many of them may wait for their answer at the same time.
	outstanding = 16
	// toCatchUp is how long a machine that is behind gets to send what was due.
	toCatchUp = 2 * time.Minute
	// fewest requests that say anything about what happened meanwhile.
	fewest = 100
	// fewestOfAKill are those of a second, as a process that was killed may be back after two.
	fewestOfAKill = 50
	// quickRotation is an argument of the webhook: no story waits for minutes.
	quickRotation = "webhook.extraArgs[0]=--certificate-overlap=2s"
)

var (
	paced  = flag.Bool("paced", false, "fail where the machine does not send fifty requests a second")
	report = flag.Bool("report", false, "write what became of them into bench/README.md")
)

// Whatever happens to the webhook, fifty requests a second get the answer that they
// deserve meanwhile: none is admitted unchecked; none is refused in error by what an
// operator does, and by what he does not only what was under way. LIFE_ROUNDS says how
// often all of it happens.
func TestWhateverHappensToTheWebhookAdmissionAnswers(t *testing.T) {
	ctx := t.Context()
	release := cluster.Helm("agent-sandbox", kit.ReleaseNamespace)
	t.Cleanup(func() {
		if err := release.Install(context.WithoutCancel(ctx), nil); err != nil {
			t.Errorf("return to the default values: %v", err)
		}
	})
	load := admission(ctx, t)
	var phases []bench.Phase
	for round := range rounds(t) {
		for _, act := range []struct {
			name string
			do   func()
		}{
			{"a rolling upgrade to two replicas", func() { upgradeWebhook(ctx, t, release, round) }},
			{"from two replicas to one and to three", func() {
				cluster.ScaleWebhook(ctx, t, 1)
				cluster.ScaleWebhook(ctx, t, 3)
			}},
			{"a new authority and certificate", func() { rotateCertificate(ctx, t) }},
			{"a reload of the policies", func() { reloadPolicies(ctx, t) }},
		} {
			found := load.During(ctx, t, act.do)
			mustAnswer(t, act.name, found, fewest)
			for _, wrong := range found.With(kit.Wrong) {
				t.Errorf("%s: refused in error: %s", act.name, wrong.Why)
			}
			phases = append(phases, phaseOf(act.name, found, time.Time{}))
		}
		phases = append(phases, killKeeper(ctx, t, load), killProcess(ctx, t, load), deleteByForce(ctx, t, load))
	}
	publish(t, phases)
}

// phaseOf counts what became of the requests of a phase. Those that were sent before a
// replica was gone were under way.
func phaseOf(what string, found *kit.Report, gone time.Time) bench.Phase {
	p := bench.Phase{
		What: what, Took: found.Took, Due: found.Due, Sent: len(found.Attempts),
		Unchecked: len(found.With(kit.Unchecked)), Refused: len(found.With(kit.Wrong)),
	}
	for _, wrong := range found.With(kit.Wrong) {
		if wrong.Begin.Before(gone) {
			p.UnderWay++
		}
	}
	return p
}

// publish shows the phases and, when asked to, writes them into the document of the
// benchmarks.
func publish(t *testing.T, phases []bench.Phase) {
	t.Helper()
	machine, err := bench.Machine()
	if err != nil {
		t.Fatal(err)
	}
	text := "Ended " + machine + ".\n\n" + bench.PhaseTable(phases)
	t.Logf("\n%s", text)
	if !*report {
		return
	}
	if t.Failed() {
		t.Fatal("the document is left as it is")
	}
	if err := bench.Publish("life", text); err != nil {
		t.Fatal(err)
	}
}

// killProcess ends the process of a replica by SIGKILL. What it was answering is lost, and
// nothing else: its socket is kept, where connections wait for the next process, or until
// their requests go over one to another replica.
func killProcess(ctx context.Context, t *testing.T, load kit.Load) bench.Phase {
	t.Helper()
	const act = "SIGKILL of a replica of three"
	var killed, gone time.Time
	found := load.During(ctx, t, func() {
		victim := cluster.WebhookPods(ctx, t)[0]
		killed = clock.RealClock{}.Now()
		kit.Kill(t, &victim, kit.WebhookCommand)
		gone = clock.RealClock{}.Now()
		awaitRestart(ctx, t, &victim)
		cluster.AwaitWebhook(ctx, t)
	})
	phase := phaseOf(act, found, gone)
	mustAnswer(t, act, found, fewestOfAKill)
	for _, wrong := range found.With(kit.Wrong) {
		if wrong.End.Before(killed) || !lost(wrong.Why) {
			t.Errorf("%s: refused in error %s later, though not under way: %s", act, wrong.Begin.Sub(killed), wrong.Why)
		}
	}
	if phase.Refused > outstanding {
		t.Errorf("%s: %d requests were refused in error, %d can be under way at once", act, phase.Refused, outstanding)
	}
	return phase
}

// lost says whether a request was refused because its connection to the webhook ended under it,
// unlike one for which there was no connection, or no answer.
func lost(why string) bool {
	return slices.ContainsFunc([]string{"EOF", "connection reset by peer", "client connection lost"}, func(end string) bool {
		return strings.Contains(why, end)
	})
}

// killKeeper ends the process that keeps the socket of a replica, which the webhook goes on
// with and leaves with the next one: nothing is refused.
func killKeeper(ctx context.Context, t *testing.T, load kit.Load) bench.Phase {
	t.Helper()
	const act = "SIGKILL of what keeps a replica's socket"
	found := load.During(ctx, t, func() {
		victim := cluster.WebhookPods(ctx, t)[0]
		kit.Kill(t, &victim, kit.SocketCommand)
		awaitRestart(ctx, t, &victim)
		cluster.AwaitWebhook(ctx, t)
	})
	mustAnswer(t, act, found, fewestOfAKill)
	for _, wrong := range found.With(kit.Wrong) {
		t.Errorf("%s: refused in error: %s", act, wrong.Why)
	}
	return phaseOf(act, found, time.Time{})
}

// deleteByForce deletes a replica without a grace period: the Service drops it at once,
// and what it is answering when its process is killed is lost.
func deleteByForce(ctx context.Context, t *testing.T, load kit.Load) bench.Phase {
	t.Helper()
	var deleted, gone time.Time
	found := load.During(ctx, t, func() {
		victim := cluster.WebhookPods(ctx, t)[0]
		deleted = clock.RealClock{}.Now()
		if err := cluster.Delete(ctx, &victim, client.GracePeriodSeconds(0)); err != nil {
			t.Fatal(err)
		}
		awaitUnlisted(ctx, t, &victim)
		kit.Eventually(ctx, t, "its process is gone", func(context.Context) error { return kit.Gone(&victim) })
		gone = clock.RealClock{}.Now()
		cluster.AwaitWebhook(ctx, t)
	})
	mustAnswer(t, "deletion by force", found, fewest)
	for _, wrong := range found.With(kit.Wrong) {
		if wrong.End.Before(deleted) || wrong.Begin.After(gone) {
			t.Errorf("deletion by force: refused in error %s after it, when the process was gone: %s", wrong.Begin.Sub(deleted), wrong.Why)
		}
	}
	if wrong := found.With(kit.Wrong); len(wrong) > outstanding {
		t.Errorf("deletion by force: %d requests were refused in error, %d can be under way at once; the last: %s",
			len(wrong), outstanding, wrong[len(wrong)-1].Why)
	}
	return phaseOf("deletion of a replica of three by force", found, gone)
}

// rounds is how often a story repeats what it does.
func rounds(t *testing.T) int {
	t.Helper()
	text := os.Getenv("LIFE_ROUNDS")
	if text == "" {
		return 1
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("LIFE_ROUNDS is %q: write a number above 0", text)
	}
	return n
}

// upgradeWebhook upgrades the release, which replaces every replica one by one.
func upgradeWebhook(ctx context.Context, t *testing.T, release kit.Helm, round int) {
	t.Helper()
	if err := release.Install(ctx, nil, "webhook.replicas=2", quickRotation, fmt.Sprintf("webhook.podAnnotations.round=%d", round)); err != nil {
		t.Fatalf("upgrade to two replicas: %v", err)
	}
	cluster.AwaitWebhook(ctx, t)
}

// mustAnswer fails the story when a request was admitted unchecked, or when there were
// too few to prove anything.
func mustAnswer(t *testing.T, act string, found *kit.Report, fewest int) {
	t.Helper()
	t.Logf("%s: %s", act, found)
	for _, unchecked := range found.With(kit.Unchecked) {
		t.Errorf("%s: admitted unchecked: %s", act, unchecked.Why)
	}
	if len(found.With(kit.Right)) < fewest {
		t.Errorf("%s: %s, which proves little", act, found)
	}
	if err := found.Slow(); *paced && err != nil {
		t.Errorf("%s: %v", act, err)
	}
}

// rotateCertificate asks for another authority and waits until the old one is gone.
func rotateCertificate(ctx context.Context, t *testing.T) {
	t.Helper()
	key := client.ObjectKey{Namespace: kit.ReleaseNamespace, Name: "agent-sandbox-webhook-cert"}
	var secret corev1.Secret
	if err := cluster.Get(ctx, key, &secret); err != nil {
		t.Fatal(err)
	}
	before := string(secret.Data["ca.crt"])
	patch := fmt.Appendf(nil, `{"metadata": {"annotations": {%q: "true"}}}`, certs.AnnotationRotate)
	if err := cluster.Patch(ctx, &secret, client.RawPatch(types.MergePatchType, patch)); err != nil {
		t.Fatal(err)
	}
	kit.Eventually(ctx, t, "another authority signs and the old one is gone", func(ctx context.Context) error {
		if err := cluster.Get(ctx, key, &secret); err != nil {
			return err
		}
		if string(secret.Data["ca.crt"]) == before || len(secret.Data["previous-ca.crt"]) > 0 {
			return errors.New("the rotation goes on")
		}
		return nil
	})
}

// reloadPolicies adds a rule, changes it, and takes it away.
func reloadPolicies(ctx context.Context, t *testing.T) {
	t.Helper()
	ns := cluster.Namespace(ctx, t)
	configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: kit.ReleaseNamespace, Name: "story-reload", Labels: map[string]string{keys.PolicySource: "true"},
		Annotations: map[string]string{keys.RemovalConfirmed: "true"},
	}}
	t.Cleanup(func() { _ = cluster.Delete(context.WithoutCancel(ctx), configMap) }) // most often it is gone
	for i, name := range []string{"ada", "eve"} {
		write := func() error { return cluster.Update(ctx, configMap) }
		if i == 0 {
			write = func() error { return cluster.Create(ctx, configMap) }
		}
		configMap.Data = map[string]string{"story.rego": nobodyIsCalled(name)}
		if err := write(); err != nil {
			t.Fatal(err)
		}
		named := kit.Object(t, ns, sandboxWith(name, "", ""))
		kit.Eventually(ctx, t, "the rule about "+name+" is in force", func(ctx context.Context) error {
			if err := cluster.Create(ctx, named.DeepCopy(), client.DryRunAll); err == nil || !strings.Contains(err.Error(), "story-"+name) {
				return fmt.Errorf("the answer is %w", err)
			}
			return nil
		})
	}
	if err := cluster.Delete(ctx, configMap); err != nil {
		t.Fatal(err)
	}
	last := kit.Object(t, ns, sandboxWith("eve", "", ""))
	kit.Eventually(ctx, t, "the rule is out of force", func(ctx context.Context) error {
		return cluster.Create(ctx, last.DeepCopy(), client.DryRunAll)
	})
}

func nobodyIsCalled(name string) string {
	return fmt.Sprintf(`# METADATA
# title: Nobody is called %[1]s
# description: A rule of a story.
# custom:
#   id: story-%[1]s
#   severity: low
#   enforcement: Deny
#   remediation: Choose another name.
#   kinds: [Sandbox]
package policies.team.story

deny contains finding if {
	input.object.metadata.name == "%[1]s"
	finding := {"message": "nobody is called so"}
}
`, name)
}

// awaitRestart waits until a container of a Pod was started again.
func awaitRestart(ctx context.Context, t *testing.T, pod *corev1.Pod) {
	t.Helper()
	restarts := func(p *corev1.Pod) (n int32) {
		for _, c := range p.Status.ContainerStatuses {
			n += c.RestartCount
		}
		return n
	}
	kit.Eventually(ctx, t, "a container of Pod "+pod.Name+" was started again", func(ctx context.Context) error {
		var now corev1.Pod
		if err := cluster.Get(ctx, client.ObjectKeyFromObject(pod), &now); err != nil {
			return err
		}
		if restarts(&now) == restarts(pod) {
			return fmt.Errorf("it was %d times, as before", restarts(pod))
		}
		return nil
	})
}

// awaitUnlisted waits until no endpoint of the webhook's Service sends requests to a
// Pod.
func awaitUnlisted(ctx context.Context, t *testing.T, pod *corev1.Pod) {
	t.Helper()
	kit.Eventually(ctx, t, "the Service knows that the replica is away", func(ctx context.Context) error {
		var found discoveryv1.EndpointSliceList
		if err := cluster.List(ctx, &found, client.InNamespace(kit.ReleaseNamespace),
			client.MatchingLabels{discoveryv1.LabelServiceName: "agent-sandbox-webhook"}); err != nil {
			return err
		}
		for i := range found.Items {
			for _, e := range found.Items[i].Endpoints {
				if slices.Contains(e.Addresses, pod.Status.PodIP) && e.Conditions.Ready != nil && *e.Conditions.Ready {
					return errors.New("the replica is still listed")
				}
			}
		}
		return nil
	})
}
