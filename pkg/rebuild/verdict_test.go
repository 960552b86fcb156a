package rebuild

import (
	"net/netip"
	"testing"
	"time"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

func TestStillHeld(t *testing.T) {
	a, b := netip.MustParseAddr("10.0.0.9"), netip.MustParseAddr("10.0.0.10")
	lease := func(change func(*ipam.Lease)) ipam.Lease {
		l := ipam.Lease{Addr: a, State: ipam.Active, Holder: ipam.Holder{
			ContainerID: "c1", IfName: "eth0", Namespace: "shop", PodName: "web", PodUID: "u1",
		}, Updated: now.Add(-workload.Reported)}
		if change != nil {
			change(&l)
		}
		return l
	}
	pod := func(uid string, addrs ...netip.Addr) *workload.Pod {
		return &workload.Pod{Namespace: "shop", Name: "web", UID: uid, Addrs: addrs}
	}
	ended, networks := pod("u1", a), pod("u1", b)
	ended.Ended, networks.Networks = true, true
	second := func(l *ipam.Lease) { l.IfName = "net1" }
	lately := func(l *ipam.Lease) { l.Updated = now.Add(-time.Minute) }
	for name, tc := range map[string]struct {
		lease ipam.Lease
		pod   *workload.Pod
		want  bool
	}{
		"the pod has it":                        {lease(nil), pod("u1", a), true},
		"the pod tells of no address yet":       {lease(nil), pod("u1"), true},
		"the pod has another":                   {lease(nil), pod("u1", b), false},
		"the pod had another lately":            {lease(lately), pod("u1", b), true},
		"another pod, lately":                   {lease(lately), pod("u2", b), true},
		"no pod, lately":                        {lease(lately), nil, false},
		"no pod":                                {lease(nil), nil, false},
		"the pod has ended":                     {lease(nil), ended, false},
		"another pod":                           {lease(nil), pod("u2"), false},
		"another pod with another address":      {lease(nil), pod("u2", b), false},
		"the mirror of a static pod, made anew": {lease(nil), pod("u2", a), true},
		"UID not known, no address yet":         {lease(func(l *ipam.Lease) { l.PodUID = "" }), pod("u2"), true},
		"second interface, told of the first":   {lease(second), pod("u1", b), true},
		"second interface, told of all":         {lease(second), networks, false},
		"set aside":                             {ipam.Lease{Addr: a, State: ipam.Reserved}, nil, true},
		"an owner's":                            {lease(func(l *ipam.Lease) { l.Owner, l.PodName = "vm-1", "" }), nil, true},
		"a container's of an unknown pod":       {lease(func(l *ipam.Lease) { l.PodName = "" }), nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			held, why := stillHeld(tc.lease, tc.pod, now)
			if held != tc.want || (why == "") != tc.want {
				t.Errorf("held = %v, %q; want %v", held, why, tc.want)
			}
		})
	}
}
