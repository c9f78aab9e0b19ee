// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package claim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/lookup"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/relations"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/sandbox"
	templates "github.com/agent-sandbox-platform/agent-sandbox/controller/template"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/warmpool"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/apiserver"
)

// Pools and claims are kept by controllers that see every event up to five seconds late,
// whose watches break, whose requests fail before and after they are carried out, and which
// are replaced in the middle of it, while users change template, strategy and replicas,
// nodes go away, Pods cease to be ready, and time jumps. What was promised is held against
// all that was ever stored.
func TestAnySequenceOfChangesToPoolsAndClaims(t *testing.T) {
	t.Parallel()
	for seed := range apiserver.Seeds(t, 2) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) { t.Parallel(); anySequence(t, seed) })
	}
}

func anySequence(t *testing.T, seed uint64) {
	t.Helper()
	faults, lag := apiserver.NewFaults(seed, 0.05), apiserver.NewLag(seed, 5*time.Second, 0.005)
	w := newWorld(t, seed, func(e *environment) { e.Faults, e.Lag, e.setting.ColdStartAfter = faults, lag, 6*time.Second })
	doubles := w.Witness()
	w.Create(makeTemplate(), makePool(func(p *pool) { p.Spec.Replicas = new(int32(5)) }))
	strategies := strategiesOf(seed)
	for _, strategy := range strategies {
		lag.Begin()
		w.turn(strategy)
		lag.Stop()
		w.settle()
	}
	if found := doubles.Doubles(); len(found) > 0 {
		t.Error(errors.Join(found...))
	}
	w.consistent()
	v := w.history.judge(w.outages, w.sightings.all())
	if len(v.wrong) > 0 {
		t.Error(errors.Join(v.wrong...))
	}
	if v.adopted == 0 || v.edits == 0 || len(w.outages) == 0 || faults.Count() == 0 {
		t.Errorf("%d members were handed out, the template changed %d times, %d nodes went away, %d requests were disturbed: the test proves nothing",
			v.adopted, v.edits, len(w.outages), faults.Count())
	}
	for _, strategy := range strategies {
		if strategy != extensionsv1beta1.UpdateStrategyOnReplenish && v.judged[strategy] == 0 {
			t.Errorf("no member was handed out under %s: the test does not prove that a stale one is not", strategy)
		}
	}
	t.Logf("%d of %d claims got a member, under strategies that forbid stale ones: %v; writes:\n%s", v.adopted, w.made, v.judged, w.Writes())
}

// strategiesOf are the strategies of the turns of a seed. Any two seeds that follow each
// other have all three, as those of every run do; none has only the one that judges nothing.
func strategiesOf(seed uint64) []extensionsv1beta1.UpdateStrategyType {
	all := []extensionsv1beta1.UpdateStrategyType{
		extensionsv1beta1.UpdateStrategyRecreate, extensionsv1beta1.UpdateStrategyRollingUpdate, extensionsv1beta1.UpdateStrategyOnReplenish,
	}
	turns := 2
	if apiserver.LongRun() {
		turns = 6
	}
	var chosen []extensionsv1beta1.UpdateStrategyType
	for turn := range turns {
		chosen = append(chosen, all[(int(seed)+turn)%len(all)])
	}
	return chosen
}

// world is a namespace with all controllers of pools and claims and what happens to them.
type world struct {
	*environment

	random    *rand.Rand
	history   *history
	sightings *sightings
	// heir is the claim controller that stands by; takeOver ends the one that works.
	heir     *Reconciler
	takeOver func()
	// pools ends the pool controller.
	pools func()
	// nodes are where Pods run; down is the one that is not ready, if any.
	nodes   []string
	down    string
	outages []outage
	// made are the claims that were ever made, claims those of them that stay.
	made, claims int
}

func newWorld(t *testing.T, seed uint64, edit func(*environment)) *world {
	t.Helper()
	w := &world{environment: newEnvironment(t, edit), random: rand.New(rand.NewPCG(seed, 2)), sightings: &sightings{shown: map[string]int64{}}}
	w.nodes = []string{w.node, w.node + "-2"}
	w.MakeNode(w.nodes[1])
	for _, node := range w.nodes {
		w.ServeKubelet(node)
	}
	byObject, err := sandbox.CacheByObject(false)
	if err != nil {
		t.Fatal(err)
	}
	w.Run(apiserver.Setup{Add: w.setUpOthers, ByObject: byObject, Undisturbed: true})
	w.startPools()
	w.standBy()
	w.history = w.record(&extensionsv1beta1.SandboxTemplateList{}, &extensionsv1beta1.SandboxWarmPoolList{},
		&extensionsv1beta1.SandboxClaimList{}, &agentsv1beta1.SandboxList{})
	return w
}

func (w *world) setUpOthers(ctx context.Context, mgr ctrl.Manager) error {
	pods := sandbox.New(mgr.GetClient(), mgr.GetAPIReader(), w.Recorder(mgr), clock.RealClock{},
		sandbox.Settings{Platform: w.setting.Current(), Current: apiserver.Platform, ClusterDomain: "cluster.local", ConcurrentWorkers: 10})
	policies := templates.New(mgr.GetClient(), mgr.GetAPIReader(), w.Recorder(mgr), clock.RealClock{},
		templates.Settings{Current: apiserver.Platform, Changed: make(chan event.GenericEvent), ConcurrentWorkers: 1})
	return errors.Join(pods.SetupWithManager(ctx, mgr), policies.SetupWithManager(ctx, mgr))
}

func (w *world) startPools() {
	w.Helper()
	seen := &sighting{sightings: w.sightings, key: w.Key("pool")}
	w.pools = w.Run(apiserver.Setup{Wrap: seen.Wrap, Add: func(ctx context.Context, mgr ctrl.Manager) error {
		seen.cache = mgr.GetClient()
		settings := warmpool.Settings{
			Current: w.setting.Current, ConcurrentWorkers: 1, Refill: warmpool.Refill{MaxBatch: 300},
			Yield:          warmpool.Yield{ToBindings: time.Second, ToColdStarts: 10 * time.Second, ColdStartAfter: w.setting.ColdStartAfter},
			ReadinessGrace: 5 * time.Minute, UnschedulableRecheck: time.Minute, SafeToEvict: true,
		}
		return warmpool.New(mgr.GetClient(), mgr.GetAPIReader(), w.Recorder(mgr), w.Clock, settings).SetupWithManager(ctx, mgr)
	}})
}

// standBy starts the claim controller that is next.
func (w *world) standBy() {
	w.Helper()
	heir, stop := w.launch(true)
	w.heir, w.takeOver = heir, func() { w.handOverTo(heir, stop) }
}

// turn is one sequence under one strategy. The strategy changes while nobody waits, and
// holds once the controllers of claims have seen it.
func (w *world) turn(strategy extensionsv1beta1.UpdateStrategyType) {
	w.Helper()
	changed := apiserver.Change(w.Environment, "pool", &pool{}, func(p *pool) {
		p.Spec.UpdateStrategy = &extensionsv1beta1.UpdateStrategy{Type: strategy}
	})
	shown(w, w.Key("pool"), &pool{}, func(p *pool) bool { return p.Generation >= changed.Generation })
	const steps = 24
	for step := range steps {
		<-clock.RealClock{}.After(time.Duration(w.random.IntN(300)) * time.Millisecond)
		switch step {
		case steps / 4:
			w.failPod()
		case steps / 3:
			w.goAway()
		case steps / 2:
			w.takeOver()
			w.soon(w.standBy)
		case steps * 2 / 3:
			w.pools()
			w.soon(w.startPools)
		default:
			w.step()
		}
	}
	w.comeBack()
	w.mendPods()
}

// soon starts something that sees at once what there is. It would otherwise be told of that
// as late as of what comes.
func (w *world) soon(start func()) {
	w.Helper()
	w.Lag.Stop()
	start()
	w.Lag.Begin()
}

// step lets one thing happen.
func (w *world) step() {
	w.Helper()
	switch draw := w.random.IntN(20); {
	case draw < 9:
		w.Create(makeClaim(fmt.Sprintf("claim-%d", w.made)))
		w.made++
		w.claims++
	case draw < 10:
		w.deleteClaim()
	case draw < 12:
		image := fmt.Sprintf("python:3.%d", w.random.IntN(3))
		apiserver.Change(w.Environment, "template", &extensionsv1beta1.SandboxTemplate{}, func(t *extensionsv1beta1.SandboxTemplate) {
			t.Spec.PodTemplate.Spec.Containers[0].Image = image
		})
	case draw < 14:
		replicas := w.random.Int32N(7) + 2
		apiserver.Change(w.Environment, "pool", &pool{}, func(p *pool) { p.Spec.Replicas = &replicas })
	case draw < 17:
		w.reportReady(w.anyMember(), corev1.ConditionFalse)
	case draw < 18:
		w.deleteMember()
	case draw < 19:
		w.Clock.Jump(time.Duration(w.random.IntN(4)) * time.Minute)
	default:
		w.comeBack()
	}
}

// deleteMember deletes a member as long as it is one: a claim that loses its Sandbox never
// gets another.
func (w *world) deleteMember() {
	w.Helper()
	member := w.anyMember()
	if member == nil {
		return
	}
	err := w.Client.Delete(w.Context(), member, client.Preconditions{UID: &member.UID, ResourceVersion: &member.ResourceVersion})
	if client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
		w.Fatal(err)
	}
}

// deleteClaim deletes any of the claims, wherever it stands.
func (w *world) deleteClaim() {
	w.Helper()
	var list extensionsv1beta1.SandboxClaimList
	if err := w.Client.List(w.Context(), &list, client.InNamespace(w.Namespace)); err != nil {
		w.Fatal(err)
	}
	if len(list.Items) > 0 {
		w.Delete(&list.Items[w.random.IntN(len(list.Items))])
		w.claims--
	}
}

// failPod lets the Pod of a member cease to be ready and waits until the controllers of
// claims have been shown that: claims that come later do not get it until it is mended.
func (w *world) failPod() {
	w.Helper()
	member := w.anyMember()
	if member == nil || !w.reportReady(member, corev1.ConditionFalse) {
		return
	}
	shown(w, w.Key(member.Name), &corev1.Pod{}, func(p *corev1.Pod) bool { return !podOf(p).Ready })
	w.outages = append(w.outages, outage{member: member.Name, from: w.version()})
}

// away are the ways in which a node is out of service.
func away() []func(*corev1.Node) {
	return []func(*corev1.Node){
		func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionFalse },
		func(n *corev1.Node) { n.Spec.Unschedulable = true },
		func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: "ToBeDeletedByClusterAutoscaler", Effect: corev1.TaintEffectNoSchedule}}
		},
	}
}

// goAway takes a node out of service and waits until the controllers of claims have been
// shown that: claims that come later get nothing from there until it comes back.
func (w *world) goAway() {
	w.Helper()
	if w.down != "" {
		return
	}
	w.down = w.nodes[w.random.IntN(len(w.nodes))]
	w.changeNode(w.down, away()[w.random.IntN(len(away()))])
	shown(w, client.ObjectKey{Name: w.down}, &corev1.Node{}, func(n *corev1.Node) bool { return !healthy(n) })
	w.outages = append(w.outages, outage{node: w.down, from: w.version()})
}

func (w *world) comeBack() {
	w.Helper()
	if w.down == "" {
		return
	}
	w.end(func(o outage) bool { return o.node != "" })
	w.changeNode(w.down, func(n *corev1.Node) {
		n.Spec.Taints, n.Spec.Unschedulable, n.Status.Conditions[0].Status = nil, false, corev1.ConditionTrue
	})
	w.down = ""
}

// end notes that outages are about to end.
func (w *world) end(which func(outage) bool) {
	w.Helper()
	now := w.version()
	for i := range w.outages {
		if w.outages[i].until == 0 && which(w.outages[i]) {
			w.outages[i].until = now
		}
	}
}

func (w *world) changeNode(name string, change func(*corev1.Node)) {
	w.Helper()
	node := &corev1.Node{}
	if err := w.Client.Get(w.Context(), client.ObjectKey{Name: name}, node); err != nil {
		w.Fatal(err)
	}
	before := node.DeepCopy()
	change(node)
	status := node.Status
	err := w.Client.Patch(w.Context(), node, client.MergeFrom(before))
	node.Status = status
	if err = errors.Join(err, w.Client.Status().Patch(w.Context(), node, client.MergeFrom(before))); err != nil {
		w.Fatal(err)
	}
}

// anyMember is a Sandbox of the pool; nil when there is none.
func (w *world) anyMember() *agentsv1beta1.Sandbox {
	w.Helper()
	var members []*agentsv1beta1.Sandbox
	all := w.sandboxes()
	for i := range all {
		if relations.Pool(&all[i]) != nil {
			members = append(members, &all[i])
		}
	}
	if len(members) == 0 {
		return nil
	}
	return members[w.random.IntN(len(members))]
}

// reportReady says of the Pod of a Sandbox whether it is ready, if it runs.
func (w *world) reportReady(of *agentsv1beta1.Sandbox, ready corev1.ConditionStatus) (runs bool) {
	w.Helper()
	pod := &corev1.Pod{}
	if of == nil || !w.Exists(of.Name, pod) || pod.Status.Phase != corev1.PodRunning {
		return false
	}
	err := apiserver.Kubelet{Client: w.Client}.Report(w.Context(), pod, func(s *corev1.PodStatus) {
		apiserver.SetCondition(s, corev1.PodReady, ready)
	})
	if client.IgnoreNotFound(err) != nil {
		w.Fatal(err)
	}
	return err == nil
}

// mendPods lets all Pods be ready again.
func (w *world) mendPods() {
	w.Helper()
	w.end(func(o outage) bool { return o.member != "" })
	all := w.sandboxes()
	for i := range all {
		w.reportReady(&all[i], corev1.ConditionTrue)
	}
}

// settle waits until every claim has a Sandbox, and the pool its replicas, all Ready, as the
// strategy wants them, and offered to claims.
func (w *world) settle() {
	w.Helper()
	w.Eventually("every claim has a Sandbox", func() error { return w.unbound(w.claims, 0) })
	w.Eventually("the pool has what it asks for", func() error {
		p, t := &pool{}, &extensionsv1beta1.SandboxTemplate{}
		w.Get("pool", p)
		w.Get("template", t)
		members, all := 0, w.sandboxes()
		for i := range all {
			member := &all[i]
			if relations.Pool(member) == nil {
				continue
			}
			members++
			if !meta.IsStatusConditionTrue(member.Status.Conditions, agentsv1beta1.ConditionReady) || judgesStaleness(p) && imageOf(member) != imageOf(t) {
				return fmt.Errorf("member %s: image %s, want %s; %v", member.Name, imageOf(member), imageOf(t), member.Status.Conditions)
			}
		}
		if want := int(*p.Spec.Replicas); members != want || int(p.Status.Replicas) != want || int(p.Status.ReadyReplicas) != want {
			return fmt.Errorf("%d members of %d, status %+v", members, want, p.Status)
		}
		if known, offered := w.reconciler.index.Size(w.Key("pool")); known != members || offered != members {
			return fmt.Errorf("%d members are known to the controller of claims and %d offered, want %d", known, offered, members)
		}
		return nil
	})
}

// version is the newest that was given to any object.
func (w *world) version() uint64 {
	w.Helper()
	var list extensionsv1beta1.SandboxClaimList
	if err := w.Client.List(w.Context(), &list, client.InNamespace(w.Namespace)); err != nil {
		w.Fatal(err)
	}
	return versionOf(list.ResourceVersion)
}

// shown waits until both controllers of claims have been shown an object as it is wanted.
func shown[T client.Object](w *world, key client.ObjectKey, like T, wanted func(T) bool) {
	w.Helper()
	for _, r := range []*Reconciler{w.reconciler, w.heir} {
		w.Eventually("the controllers of claims have seen the change", func() error {
			if err := r.client.Get(w.Context(), key, like, lookup.Glance); err != nil {
				return err
			}
			if !wanted(like) {
				return fmt.Errorf("they see %+v", like)
			}
			return nil
		})
	}
}
