package allocator

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

// givesBeside stores what a replica does that does not know the pool to have the machine's address: it gives the
// target's container another one.
func (v *vm) givesBeside(p *corev1.Pod) (other netip.Addr) {
	v.t.Helper()
	r, pool := v.from(p), poolOf(v.t, v.pool)
	other = v.site.addr(20)
	if other == v.addr {
		other = v.site.addr(19)
	}
	h := lease.Holder{
		Host: r.Host, ContainerID: r.ContainerID, IfName: lease.DefaultIfName, Namespace: r.Namespace,
		PodName: r.PodName,
		PodUID:  r.PodUID, UIDNamed: true, StartedAt: v.r.leases.Now().Add(-time.Second),
	}
	next, ok := lease.Bind(v.r.lease(other), pool.Params(), h, v.keyed("default/"+v.name).Retention, v.r.leases.Now())
	if !ok {
		v.t.Fatalf("%s is not free", other)
	}
	if _, err := v.r.leases.Write(v.t.Context(), next); err != nil {
		v.t.Fatal(err)
	}
	return other
}

// TestTargetThatGotTwo: the target of a migration that two replicas served at once, one of which took another address
// for it, keeps what it got first, whatever becomes of the source.
func TestTargetThatGotTwo(t *testing.T) {
	cluster.InstallKubeVirt(t)
	r := newReplica(t)
	for name, test := range map[string]func(*vm){
		"the machine's address first": func(v *vm) {
			p := v.migrates()
			v.givesBeside(p)
			v.gets(v.r, p)
			v.has(v.source, p)
			v.ends(v.source, true)
			v.keeps(p, v.addr)
		},
		"the machine's address first, and its source ends": func(v *vm) {
			p := v.migrates()
			v.givesBeside(p)
			v.ends(v.source, true)
			v.keeps(p, v.addr)
		},
		"the machine's address first, and the source has a new container": func(v *vm) {
			p := v.migrates()
			again := v.from(v.source)
			again.ContainerID += "-again"
			v.r.one(again)
			v.givesBeside(p)
			v.keeps(p, v.addr)
		},
		"the other one first": func(v *vm) {
			p := v.target()
			other := v.givesBeside(p)
			v.attaches(p)
			v.keeps(p, other)
			v.has(v.source)
		},
		"the other one first, and the source ends": func(v *vm) {
			p := v.target()
			other := v.givesBeside(p)
			v.attaches(p)
			v.ends(v.source, true)
			v.keeps(p, other)
		},
	} {
		t.Run(name, func(t *testing.T) { test(newVM(t, r)) })
	}
}

// attaches stores the second attachment of a pod, as a replica does that does not know of another address of it.
func (v *vm) attaches(p *corev1.Pod) {
	v.t.Helper()
	r, l := v.from(p), v.r.lease(v.addr)
	h := lease.Holder{
		Host: r.Host, ContainerID: r.ContainerID, IfName: lease.DefaultIfName, Namespace: r.Namespace,
		PodName: r.PodName,
		PodUID:  r.PodUID, UIDNamed: true, StartedAt: v.r.leases.Now().Add(-time.Second),
	}
	next, ok := lease.Attach(l, h, l.Retention, v.r.leases.Now())
	if !ok {
		v.t.Fatalf("%+v", l)
	}
	if _, err := v.r.leases.Write(v.t.Context(), next); err != nil {
		v.t.Fatal(err)
	}
}

// keeps checks that the next answer to a pod is an address, and that it has no other one.
func (v *vm) keeps(p *corev1.Pod, want netip.Addr) {
	v.t.Helper()
	if got := v.r.add(v.from(p)); !slices.Equal(got, []netip.Addr{want}) {
		v.t.Errorf("%s got %v, want %s", p.Name, got, want)
	}
	controlplane.Until(v.t, "it has one address", func() bool {
		held := v.r.index.Leases.ByAttachment(lease.Holder{PodUID: string(p.UID)})
		return len(held) == 1 && held[0].Addr == want && held[0].State == lease.Active
	})
}
