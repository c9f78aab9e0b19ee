// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/config"
)

const (
	// patience is how long a Pod may take, and serverLife how long the one that is asked lives.
	patience   = time.Minute
	serverLife = 10 * time.Minute
	interval   = 250 * time.Millisecond
)

// Options say where and with what the preflight runs.
type Options struct {
	// Namespace is where its Pods run.
	Namespace string
	// Image is the image of the webhook; PullSecrets name the Secrets to pull it.
	Image       string
	PullSecrets []string
	// Certificate is the name of the webhook's Certificate; empty where cert-manager does
	// not keep it.
	Certificate string
}

// Run tries the cluster and writes what it found. Its error lists what makes the cluster
// unfit, or says why the preflight could not be made. It removes what it made.
func Run(ctx context.Context, c client.Client, o Options, p *config.Platform, out io.Writer) error {
	r := runner{client: c, options: o, fromZero: sets.New(p.RuntimeClassesFromZero...)}
	findings, err := r.gather(ctx)
	err = errors.Join(err, r.remove(context.WithoutCancel(ctx)))
	if err != nil {
		return err
	}
	lines, faults := findings.Report(p)
	for _, line := range lines {
		if _, err := fmt.Fprintln(out, line); err != nil {
			return fmt.Errorf("report: %w", err)
		}
	}
	if len(faults) > 0 {
		return fmt.Errorf("the cluster is not fit for Sandboxes: %d of the findings above must be mended", len(faults))
	}
	return nil
}

type runner struct {
	client  client.Client
	options Options
	// fromZero are the classes that may have no node now.
	fromZero sets.Set[string]
	made     []client.Object
}

func (r *runner) gather(ctx context.Context) (Findings, error) {
	f := Findings{RuntimeClasses: map[string]string{}, FromZero: sets.New[string]()}
	server := r.options.pod(roleServer, "", CommandServe, ":"+strconv.Itoa(ServePort))
	if err := errors.Join(r.create(ctx, r.options.denyAll()), r.create(ctx, server)); err != nil {
		return f, err
	}
	if err := r.await(ctx, server, func() bool { return server.Status.Phase == corev1.PodRunning && len(server.Status.PodIPs) > 0 }); err != nil {
		return f, fmt.Errorf("start a Pod: %s: %w", why(server), err)
	}
	for _, address := range server.Status.PodIPs {
		f.Servers = append(f.Servers, net.JoinHostPort(address.IP, strconv.Itoa(ServePort)))
	}
	targets := slices.Concat([]string{CommandProbe}, f.Servers, metadataAddresses)
	open, denied := r.options.pod(roleOpen, "", targets...), r.options.pod(roleDenied, "", targets...)
	if err := errors.Join(r.create(ctx, open), r.create(ctx, denied)); err != nil {
		return f, err
	}
	classes, err := r.startClasses(ctx, f.RuntimeClasses)
	if err != nil {
		return f, err
	}
	var openErr, deniedErr, againErr, certificateErr error
	f.Open, openErr = r.answers(ctx, open)
	f.Denied, deniedErr = r.answers(ctx, denied)
	f.Again, againErr = r.again(ctx, f.Servers)
	if err := errors.Join(openErr, deniedErr, againErr, r.awaitClasses(ctx, classes, f)); err != nil {
		return f, err
	}
	if r.options.Certificate != "" {
		key := client.ObjectKey{Namespace: r.options.Namespace, Name: r.options.Certificate}
		f.Certificate, certificateErr = AwaitCertificate(ctx, r.client, key)
	}
	return f, certificateErr
}

// again asks the server from one more Pod without a policy: who was denied until now may have
// asked one that was gone.
func (r *runner) again(ctx context.Context, servers []string) (Answers, error) {
	pod := r.options.pod(roleAgain, "", append([]string{CommandProbe}, servers...)...)
	if err := r.create(ctx, pod); err != nil {
		return nil, err
	}
	return r.answers(ctx, pod)
}

// startClasses makes one Pod under each RuntimeClass, and notes the classes under which it
// may not.
func (r *runner) startClasses(ctx context.Context, found map[string]string) (map[string]*corev1.Pod, error) {
	var classes nodev1.RuntimeClassList
	if err := r.client.List(ctx, &classes); err != nil {
		return nil, fmt.Errorf("list RuntimeClasses: %w", err)
	}
	pods := map[string]*corev1.Pod{}
	for i := range classes.Items {
		name := classes.Items[i].Name
		pods[name] = r.options.pod(roleClass, name, CommandProbe)
		if err := r.create(ctx, pods[name]); apierrors.IsForbidden(err) || apierrors.IsInvalid(err) {
			found[name] = err.Error()
			delete(pods, name)
		} else if err != nil {
			return nil, err
		}
	}
	return pods, nil
}

// awaitClasses notes what became of the Pods. All of them have the time of one, since any
// number of classes may have no node.
func (r *runner) awaitClasses(ctx context.Context, pods map[string]*corev1.Pod, found Findings) error {
	err := wait.PollUntilContextTimeout(ctx, interval, patience, true, func(ctx context.Context) (bool, error) {
		left := false
		for name, pod := range pods {
			if ended(pod) || found.FromZero.Has(name) {
				continue
			}
			if err := r.client.Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil {
				return false, fmt.Errorf("read the Pod under RuntimeClass %s: %w", name, err)
			}
			if r.fromZero.Has(name) && unschedulable(pod) {
				found.FromZero.Insert(name)
				if err := r.client.Delete(ctx, pod); client.IgnoreNotFound(err) != nil { // or a node is made for it
					return false, fmt.Errorf("remove the Pod under RuntimeClass %s: %w", name, err)
				}
				continue
			}
			left = left || !ended(pod)
		}
		return !left, nil
	})
	if err != nil && !wait.Interrupted(err) {
		return err
	}
	for name, pod := range pods {
		switch {
		case found.FromZero.Has(name):
		case pod.Status.Phase == corev1.PodSucceeded:
			found.RuntimeClasses[name] = ""
		default:
			found.RuntimeClasses[name] = why(pod)
		}
	}
	return nil
}

// unschedulable says whether no node takes the Pod now.
func unschedulable(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable
	})
}

func (r *runner) answers(ctx context.Context, pod *corev1.Pod) (Answers, error) {
	if err := r.await(ctx, pod, func() bool { return ended(pod) }); err != nil || pod.Status.Phase != corev1.PodSucceeded {
		return nil, errors.Join(fmt.Errorf("probe in Pod %s: %s", pod.Name, why(pod)), err)
	}
	answers := Answers{}
	if err := json.Unmarshal([]byte(pod.Status.ContainerStatuses[0].State.Terminated.Message), &answers); err != nil {
		return nil, fmt.Errorf("read what Pod %s saw: %w", pod.Name, err)
	}
	return answers, nil
}

func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

func (r *runner) create(ctx context.Context, object client.Object) error {
	if err := r.client.Create(ctx, object); err != nil {
		return fmt.Errorf("make %s: %w", object.GetGenerateName(), err)
	}
	r.made = append(r.made, object)
	return nil
}

// await reads the Pod again and again until the condition holds.
func (r *runner) await(ctx context.Context, pod *corev1.Pod, done func() bool) error {
	return wait.PollUntilContextTimeout(ctx, interval, patience, true, func(ctx context.Context) (bool, error) {
		if err := r.client.Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil {
			return false, fmt.Errorf("read Pod %s: %w", pod.Name, err)
		}
		return done(), nil
	})
}

func (r *runner) remove(ctx context.Context) error {
	var errs []error
	for _, object := range r.made {
		if err := r.client.Delete(ctx, object); client.IgnoreNotFound(err) != nil {
			errs = append(errs, fmt.Errorf("remove %s: %w", object.GetName(), err))
		}
	}
	return errors.Join(errs...)
}
