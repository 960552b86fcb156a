package rest

import (
	"context"
	"net/netip"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bcsnet/bcsnet/pkg/gone"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// TestMigration: an address of a virtual machine that migrates live is one row, of the pod that is asked for, and is
// not released while either pod is there.
func TestMigration(t *testing.T) {
	c := cached{pods: map[types.NamespacedName]*corev1.Pod{}}
	target := &corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodRunning}}
	target.Namespace, target.Name, target.UID = "shop", "vm-b", "u2"
	c.pods[types.NamespacedName{Namespace: "shop", Name: "vm-b"}] = target
	s := newService(t, c)
	one := goneFor(c, s.Index)
	s.Gone = func(ctx context.Context, l lease.Lease, live bool) (least gone.Decision, err error) {
		least.Verdict = gone.Gone
		for side := range l.Attachments() { // as the collector judges it
			d, err := one(ctx, side, live)
			if err != nil || d.Verdict < least.Verdict {
				return d, err
			}
		}
		return least, nil
	}
	s.Index.Feed.Wrote(lease.Lease{
		Addr: netip.MustParseAddr("10.0.70.2"), Version: 1, State: lease.Active, Params: lease.Params{Pool: "p"},
		Holder: lease.Holder{Namespace: "shop", PodName: "vm-a", PodUID: "u1", ContainerID: "a", IfName: "eth0"},
		Other:  &lease.Holder{Namespace: "shop", PodName: "vm-b", PodUID: "u2", ContainerID: "b", IfName: "eth0"},
	})
	for query, want := range map[string]FloatingIP{
		"":                            {PodName: "vm-a", Status: "Deleted"},
		"podName=vm-a&namespace=shop": {PodName: "vm-a", Status: "Deleted"},
		"podName=vm-b&namespace=shop": {PodName: "vm-b", Status: "Running"},
		"keyword=vm-b":                {PodName: "vm-b", Status: "Running"},
	} {
		out, err := s.ListIPs(t.Context(), query)
		if err != nil || len(out.Content) != 1 {
			t.Fatalf("%q: %+v, %v", query, out, err)
		}
		if got := out.Content[0]; got.PodName != want.PodName || got.Status != want.Status || got.Releasable {
			t.Errorf("%q: %+v, want %+v", query, got, want)
		}
	}
	for _, pod := range []string{"vm-a", "vm-b"} {
		row, err := s.ListIPs(t.Context(), "podName="+pod)
		if err != nil {
			t.Fatal(err)
		}
		is := row.Content[0]
		in := ReleaseIPRequest{IPs: []OwnedIP{{
			IP: is.IP, Namespace: is.Namespace, PodName: is.PodName, AppName: is.AppName, AppType: is.AppType,
		}}}
		if out, released, err := s.ReleaseIPs(t.Context(), in, lease.Change{}); err == nil || len(released) > 0 {
			t.Errorf("%s: released %v, %+v", pod, released, out)
		}
	}
	in := ReleaseIPRequest{IPs: []OwnedIP{{IP: "10.0.70.2", Namespace: "shop", PodName: "vm-c"}}}
	if out, _, err := s.ReleaseIPs(t.Context(), in, lease.Change{}); err != nil || len(out.Unreleased) != 1 {
		t.Errorf("another pod: %+v, %v", out, err)
	}
}
