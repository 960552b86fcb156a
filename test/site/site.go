// Package site gives a test pools with a host of its own, on a control plane that others may use at the same time.
package site

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/httpapi/wire"
	"github.com/bcsnet/bcsnet/test/plugin"
)

// Patience is for what must come, however slow the machine is.
const Patience = 5 * time.Minute

// Site is what a test has.
type Site struct {
	*testing.T
	Admin client.Client
	// Host is the host of its pools and pods.
	Host string
	// URL is the base of the controller that Ask asks, by means of Caller.
	URL    string
	Caller *http.Client
}

// NewPool makes a pool in 10.0.0.0/8 and lets it go after the test, with whatever it still holds.
func (s *Site) NewPool(name string, change func(*v1.BCSNetPoolSpec), addresses ...string) *v1.BCSNetPool {
	s.Helper()
	s.Cleanup(s.Caller.CloseIdleConnections)
	p := &v1.BCSNetPool{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1.BCSNetPoolSpec{
		Net: "10.0.0.0", Mask: 8, Gateway: "10.255.255.254", Hosts: []string{s.Host}, AvailableIPs: addresses,
	}}
	if change != nil {
		change(&p.Spec)
	}
	if err := s.Admin.Create(s.Context(), p); err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() {
		// A deleted pool stays for a while; it is no pool of the next test's host.
		noHosts := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"hosts":null,"hostSelector":null}}`))
		err := errors.Join(
			client.IgnoreNotFound(s.Admin.Patch(context.Background(), p, noHosts)),
			client.IgnoreNotFound(s.Admin.Delete(context.Background(), p)))
		if err != nil {
			s.Error(err)
		}
	})
	return p
}

// Edit changes a pool's spec.
func (s *Site) Edit(p *v1.BCSNetPool, change func(*v1.BCSNetPoolSpec)) {
	s.Helper()
	if err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if err := s.Admin.Get(s.Context(), client.ObjectKeyFromObject(p), p); err != nil {
			return err
		}
		change(&p.Spec)
		return s.Admin.Update(s.Context(), p)
	}); err != nil {
		s.Fatal(err)
	}
}

// NewPod makes a pod that may ask for an address.
func (s *Site) NewPod(name string) {
	s.Helper()
	s.makePod(name, "")
}

// BoundPod makes a pod on the host of the pools.
func (s *Site) BoundPod(name string) {
	s.Helper()
	p := s.makePod(name, "bound")
	p.Status.HostIP, p.Status.HostIPs = s.Host, []corev1.HostIP{{IP: s.Host}}
	if err := s.Admin.Status().Update(s.Context(), p); err != nil {
		s.Fatal(err)
	}
}

func (s *Site) makePod(name, node string) *corev1.Pod {
	s.Helper()
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "c", Image: "c"}}},
	}
	if err := s.Admin.Create(s.Context(), p); err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = s.Admin.Delete(context.Background(), p, client.GracePeriodSeconds(0)) })
	return p
}

// Report has a pod run with addresses.
func (s *Site) Report(name string, addrs ...string) {
	s.Helper()
	p := &corev1.Pod{}
	key := types.NamespacedName{Namespace: "default", Name: name}
	if err := s.Admin.Get(context.Background(), key, p); err != nil {
		s.Fatal(err)
	}
	p.Status.Phase, p.Status.PodIPs = corev1.PodRunning, nil
	for _, a := range addrs {
		p.Status.PodIPs = append(p.Status.PodIPs, corev1.PodIP{IP: a})
	}
	if err := s.Admin.Status().Update(context.Background(), p); err != nil {
		s.Fatal(err)
	}
}

// Aged has addresses be bound ten minutes ago, in the order of the list. Replicas learn of it as of any change.
func (s *Site) Aged(addrs ...string) {
	s.Helper()
	for _, a := range addrs {
		o := &v1.BCSNetIP{ObjectMeta: metav1.ObjectMeta{Name: a}}
		at := time.Now().Add(-10 * time.Minute).UTC().Format(time.RFC3339Nano)
		earlier := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"status":{"updateTime":%q}}`, at))
		if err := s.Admin.Patch(s.Context(), o, earlier); err != nil {
			s.Fatal(err)
		}
	}
}

// LoseAll takes objects away as no client of bcsnet does.
func (s *Site) LoseAll(addrs ...string) {
	s.Helper()
	for _, a := range addrs {
		o := &v1.BCSNetIP{ObjectMeta: metav1.ObjectMeta{Name: a}}
		noFinalizers := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
		if err := s.Admin.Patch(s.Context(), o, noFinalizers); err != nil {
			s.Fatal(err)
		}
		if err := s.Admin.Delete(s.Context(), o); err != nil {
			s.Fatal(err)
		}
	}
}

// Ask sends an ADD or a DEL for a pod.
func (s *Site) Ask(method, pod, ipAddr string) plugin.Answer {
	s.Helper()
	return s.AskAt(s.URL, method, pod, ipAddr)
}

// AskAt sends an ADD or a DEL to one replica.
func (s *Site) AskAt(url, method, pod, ipAddr string) plugin.Answer {
	s.Helper()
	a, err := plugin.Ask(s.Context(), s.Caller, method, url, wire.AllocateRequest{
		Host: s.Host, ContainerID: "sandbox-" + pod, PodName: pod, PodNamespace: "default", IPAddr: ipAddr,
	})
	if err != nil {
		s.Fatal(err)
	}
	return a
}
