package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	typedv1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/node/bed"
)

const (
	podsPerRound, reusesPerRound = 10, 2
	// longestPause bounds the pauses between pods.
	longestPause = time.Second
	// podPatience bounds how long a pod may take to start or to end, and an address to be reached.
	podPatience = 2 * time.Minute
	// knock is the time that one question to a pod may take.
	knock = 200 * time.Millisecond
	// reusedAddr is the address that one pod has after the other.
	reusedAddr = "192.168.77.230"
)

// nodeTimes are the times by network, a turn each.
type nodeTimes struct {
	// Ready is from the creation of a pod until it is Ready; Sandbox the part of it until its network is there.
	Ready   map[string][]time.Duration `json:"ready"`
	Sandbox map[string][]time.Duration `json:"sandbox"`
	// Reused is from Ready until a pod answers a station that knew an earlier pod of the address.
	Reused map[string][]time.Duration `json:"reused"`
}

// podMeter makes pods on real nodes and takes their times.
type podMeter struct {
	*bed.Bed
	pods typedv1.PodInterface
	rng  *rand.Rand
}

func newPodMeter(ctx context.Context, b *bed.Bed) (*podMeter, error) {
	set, err := kubernetes.NewForConfig(b.Cluster.Config)
	if err != nil {
		return nil, err
	}
	err = controlplane.WaitFor(ctx, podPatience, func() error { // pods need it
		_, err := set.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
	return &podMeter{Bed: b, pods: set.CoreV1().Pods(metav1.NamespaceDefault), rng: rand.New(rand.NewPCG(1, 1))}, err
}

// starts makes a pod of each network in turn, on one node, in an order that changes. The first turn does not count.
func (m *podMeter) starts(ctx context.Context, turns int) (map[string][]time.Duration, error) {
	networks := []string{hostLocal, leased, announced, probed}
	ready := map[string][]time.Duration{}
	for i := range 1 + turns {
		say("pods on a real node: turn %d of %d", i, turns)
		for _, network := range networks {
			// Kubelets do some things once a second: pods come at any moment of it.
			if err := pause(ctx, below(m.rng, longestPause)); err != nil {
				return nil, err
			}
			took, err := m.start(ctx, turnPod(network, i), "n1", network)
			if err != nil {
				return nil, err
			}
			if err := m.end(ctx, turnPod(network, i)); err != nil {
				return nil, err
			}
			if i > 0 {
				ready[network] = append(ready[network], took)
			}
		}
		networks = append(networks[1:], networks[0])
	}
	return ready, nil
}

func turnPod(network string, turn int) string { return fmt.Sprintf("%s-%d", network, turn) }

// below returns a random time below a limit.
func below(rng *rand.Rand, limit time.Duration) time.Duration {
	return time.Duration(rng.Int64N(int64(limit)))
}

// start makes a pod and returns how long it takes to be Ready.
func (m *podMeter) start(ctx context.Context, name, node, network string) (time.Duration, error) {
	pod := bed.In(network, bed.Pod(metav1.NamespaceDefault, name, node))
	pod.Spec.Containers[0].StartupProbe = nil // asked once a second: the pod is Ready when its program runs
	w, err := m.watch(ctx, name)
	if err != nil {
		return 0, err
	}
	defer w.Stop()
	began := time.Now()
	if _, err := m.pods.Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		return 0, err
	}
	err = m.await(ctx, w, func(e watch.Event) bool {
		pod, ok := e.Object.(*corev1.Pod)
		return ok && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		})
	})
	if err != nil {
		return 0, fmt.Errorf("the pod %s is not Ready: %w", name, err)
	}
	return time.Since(began), nil
}

// end deletes a pod and returns when it is gone.
func (m *podMeter) end(ctx context.Context, name string) error {
	w, err := m.watch(ctx, name)
	if err != nil {
		return err
	}
	defer w.Stop()
	if err := m.pods.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		return err
	}
	if err := m.await(ctx, w, func(e watch.Event) bool { return e.Type == watch.Deleted }); err != nil {
		return fmt.Errorf("the pod %s does not end: %w", name, err)
	}
	return nil
}

func (m *podMeter) watch(ctx context.Context, name string) (watch.Interface, error) {
	return m.pods.Watch(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, name).String(),
	})
}

// await waits for an event.
func (m *podMeter) await(ctx context.Context, w watch.Interface, is func(watch.Event) bool) error {
	ctx, stop := context.WithTimeout(ctx, podPatience)
	defer stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case e, open := <-w.ResultChan():
			if !open {
				return errors.New("the watch ended")
			}
			if is(e) {
				return nil
			}
		}
	}
}
