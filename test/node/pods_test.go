//go:build linux

package node

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/node/bed"
)

// tenant is a namespace of a test's own. When the test ends all pods of it end, none of them stays in Terminating, and
// no address stays in use.
type tenant struct {
	*fixture
	client.Client
	namespace string
}

// newTenant returns the namespace of a test, which is skipped where there is no bed.
func newTenant(t *testing.T) *tenant {
	t.Helper()
	b := shared.For(t)
	x := &tenant{fixture: world, Client: b.Cluster.AdminFor(t)}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	if err := x.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	x.namespace = namespace.Name
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		if err := x.Delete(ctx, namespace); err != nil {
			t.Error(err)
		}
		x.wantNoPods(t)
		x.wantNothingLeft(t)
		if t.Failed() {
			x.logEvents(t)
		}
	})
	controlplane.Eventually(t, func() error { // pods need it
		return x.Get(t.Context(), client.ObjectKey{Namespace: x.namespace, Name: "default"}, &corev1.ServiceAccount{})
	})
	return x
}

// wantNoPods waits until the kubelets have ended all pods of the namespace.
func (x *tenant) wantNoPods(t *testing.T) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	err := controlplane.WaitFor(ctx, 90*time.Second, func() error {
		pods := &corev1.PodList{}
		err := x.List(ctx, pods, client.InNamespace(x.namespace))
		for i := range pods.Items {
			err = errors.Join(err, fmt.Errorf("the pod %s is still there, deleted at %v", pods.Items[i].Name, pods.Items[i].DeletionTimestamp))
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// hasEvent returns an error unless a pod has an event whose message has a text in it.
func (x *tenant) hasEvent(t *testing.T, pod *corev1.Pod, text string) error {
	t.Helper()
	events := &corev1.EventList{}
	if err := x.List(t.Context(), events, client.InNamespace(x.namespace)); err != nil {
		return err
	}
	for i := range events.Items {
		if e := &events.Items[i]; e.InvolvedObject.Name == pod.Name && strings.Contains(e.Message, text) {
			return nil
		}
	}
	return fmt.Errorf("the pod %s has no event with %q", pod.Name, text)
}

func (x *tenant) logEvents(t *testing.T) {
	t.Helper()
	events := &corev1.EventList{}
	if err := x.List(context.WithoutCancel(t.Context()), events, client.InNamespace(x.namespace)); err != nil {
		t.Log(err)
	}
	for i := range events.Items {
		e := &events.Items[i]
		t.Logf("%s %s %s: %s", e.LastTimestamp.Format(time.TimeOnly), e.InvolvedObject.Name, e.Reason, e.Message)
	}
}

// create makes a pod on a node, in a network, and does not wait for it.
func (x *tenant) create(t *testing.T, name, node, network string) *corev1.Pod {
	t.Helper()
	pod := bed.Pod(x.namespace, name, node)
	if network != bridged {
		pod = bed.In(network, pod)
	}
	if err := x.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	return pod
}

// addresses are those of a pod, one of each family.
type addresses struct{ v4, v6 netip.Addr }

func (a addresses) String() string { return fmt.Sprintf("%s and %s", a.v4, a.v6) }

// ready waits until a pod is ready, and returns its addresses.
func (x *tenant) ready(t *testing.T, pod *corev1.Pod) (a addresses) {
	t.Helper()
	controlplane.EventuallyWithin(t, 2*time.Minute, func() (err error) {
		a, err = x.asReady(t, pod)
		return err
	})
	return a
}

// asReady returns the addresses of a pod, or an error while it is not ready.
func (x *tenant) asReady(t *testing.T, pod *corev1.Pod) (a addresses, err error) {
	t.Helper()
	if err := x.Get(t.Context(), client.ObjectKeyFromObject(pod), pod); err != nil {
		return a, err
	}
	isReady := func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue }
	if !slices.ContainsFunc(pod.Status.Conditions, isReady) || pod.DeletionTimestamp != nil {
		return a, fmt.Errorf("the pod %s is not ready: %+v", pod.Name, pod.Status)
	}
	addrs, err := bed.Addresses(pod)
	for _, addr := range addrs {
		if addr.Is4() {
			a.v4 = addr
		} else {
			a.v6 = addr
		}
	}
	return a, err
}

// reaches has one pod ask another one once, over each family that they have, and compares the name that answers.
func (x *tenant) reaches(t *testing.T, from, to addresses, name string) {
	t.Helper()
	for _, way := range [][2]netip.Addr{{from.v4, to.v4}, {from.v6, to.v6}} {
		if !way[0].IsValid() || !way[1].IsValid() {
			continue
		}
		if answer, err := x.Reach(t.Context(), way[0], way[1]); err != nil || !strings.HasPrefix(answer, name+" at ") {
			t.Errorf("from %s to %s: %q, %v; want %s", way[0], way[1], answer, err, name)
		}
	}
}
