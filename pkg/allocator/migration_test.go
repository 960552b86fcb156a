package allocator

import (
	"fmt"
	"net/netip"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/intercept"
)

var machines atomic.Int64

// vm is a virtual machine of KubeVirt on a host of a site of its own, whose address is kept for it; there is a second
// host. What KubeVirt does is done by the test.
type vm struct {
	site
	t      testing.TB
	r      *replica
	name   string
	second netip.Addr
	object *unstructured.Unstructured
	source *corev1.Pod
	addr   netip.Addr
	pods   int
}

// newVM starts a machine that asks a replica for its address; all replicas know its pool.
func newVM(t testing.TB, r *replica, others ...*replica) *vm {
	t.Helper()
	s := newSite("9-20")
	v := &vm{site: s, t: t, r: r.in(t), name: fmt.Sprint("vm-", machines.Add(1)), second: s.host.Next()}
	s.pool.Spec.Hosts = append(s.pool.Spec.Hosts, v.second.String())
	for _, r := range append(others, r) {
		r.index.Pools.SetPool(poolOf(t, s.pool))
	}
	v.object = controlplane.KubeVirtObject("VirtualMachineInstance", "default", v.name, map[string]any{
		"status": map[string]any{"phase": "Running"},
	})
	if err := cluster.AdminFor(t).Create(t.Context(), v.object); err != nil {
		t.Fatal(err)
	}
	v.source = v.pod(s.host, nil)
	v.lists(v.source)
	v.addr = v.r.one(v.from(v.source))
	return v
}

// pod makes a pod of the machine on a host, for a migration where one is given.
func (v *vm) pod(host netip.Addr, by *unstructured.Unstructured) *corev1.Pod {
	v.t.Helper()
	v.pods++
	p := podObject(fmt.Sprintf("virt-launcher-%s-%d", v.name, v.pods), host)
	p.Labels = map[string]string{"vm.kubevirt.io/name": v.name, "kubevirt.io": "virt-launcher"}
	p.OwnerReferences = []metav1.OwnerReference{controlplane.ControlledBy(v.object)}
	if by != nil {
		p.Labels["kubevirt.io/migrationJobUID"] = string(by.GetUID())
		p.Annotations = map[string]string{"kubevirt.io/migrationJobName": by.GetName()}
	}
	terms.set(p.Name, v.keyed("default/"+v.name))
	if err := cluster.AdminFor(v.t).Create(v.t.Context(), p); err != nil {
		v.t.Fatal(err)
	}
	v.r.sees(p)
	return p
}

// from is the request of a pod, whose container is called as the pod.
func (v *vm) from(p *corev1.Pod) Request {
	host, _ := netip.ParseAddr(nodeAddrs(p.Spec.NodeName)[0].String())
	return Request{Host: host, ContainerID: p.Name, Namespace: p.Namespace, PodName: p.Name, PodUID: string(p.UID)}
}

// says changes what the machine's object says.
func (v *vm) says(value any, fields ...string) {
	v.t.Helper()
	admin := cluster.AdminFor(v.t)
	if err := unstructured.SetNestedField(v.object.Object, value, fields...); err != nil {
		v.t.Fatal(err)
	}
	if err := admin.Update(v.t.Context(), v.object); err != nil {
		v.t.Fatal(err)
	}
}

// lists has the machine list its pods, as virt-controller does once it has seen them.
func (v *vm) lists(pods ...*corev1.Pod) {
	v.t.Helper()
	all := map[string]any{}
	for _, p := range pods {
		all[string(p.UID)] = p.Spec.NodeName
	}
	v.says(all, "status", "activePods")
}

// migration makes a migration of the machine.
func (v *vm) migration() *unstructured.Unstructured {
	v.t.Helper()
	v.pods++
	by := controlplane.KubeVirtObject("VirtualMachineInstanceMigration", "default", fmt.Sprint(v.name, "-", v.pods),
		map[string]any{"spec": map[string]any{"vmiName": v.name}})
	if err := cluster.AdminFor(v.t).Create(v.t.Context(), by); err != nil {
		v.t.Fatal(err)
	}
	v.phase(by, "Scheduling")
	return by
}

func (v *vm) phase(by *unstructured.Unstructured, phase string) {
	v.t.Helper()
	_ = unstructured.SetNestedField(by.Object, phase, "status", "phase")
	if err := cluster.AdminFor(v.t).Status().Update(v.t.Context(), by); err != nil {
		v.t.Fatal(err)
	}
}

// target begins a migration to the second host, and makes its pod.
func (v *vm) target() *corev1.Pod {
	v.t.Helper()
	p := v.pod(v.second, v.migration())
	v.lists(v.source, p)
	return p
}

// migrates begins a migration and has the target's pod ask.
func (v *vm) migrates() *corev1.Pod {
	v.t.Helper()
	p := v.target()
	v.gets(v.r, p)
	v.has(v.source, p)
	return p
}

// gets asks a replica for the machine's address, which another pod has, too.
func (v *vm) gets(r *replica, p *corev1.Pod) {
	v.t.Helper()
	got, err := r.Allocate(v.t.Context(), v.from(p))
	if err != nil || len(got) != 1 || got[0].Addr != v.addr || !got[0].Migration || got[0].Host != v.from(p).Host ||
		got[0].ContainerID != p.Name {
		v.t.Fatalf("%s got %+v, %v, want %s for a migration", p.Name, got, err, v.addr)
	}
}

// ends sends the DEL of a pod's container, and checks whether it released something.
func (v *vm) ends(p *corev1.Pod, released bool) {
	v.t.Helper()
	if got := v.r.del(del(v.from(p))); (len(got) > 0) != released {
		v.t.Fatalf("the DEL of %s released %v", p.Name, got)
	}
}

// has checks whose the address is on the API server, and that the index of the replica agrees.
func (v *vm) has(pods ...*corev1.Pod) {
	v.t.Helper()
	l := v.r.lease(v.addr)
	var who, want []string
	for side := range l.Attachments() {
		if l.State == lease.Active {
			who = append(who, side.PodName)
		}
	}
	for _, p := range pods {
		want = append(want, p.Name)
	}
	if !slices.Equal(who, want) {
		v.t.Fatalf("%s %s: %v have it, want %v", v.addr, l.State, who, want)
	}
	controlplane.Until(v.t, "the index shows the same", func() bool {
		known, _ := v.r.index.Leases.Get(v.addr)
		return known.Version == l.Version
	})
	for _, p := range pods {
		r := v.from(p)
		for what, got := range map[string][]lease.Lease{
			"container": v.r.index.Leases.ByContainer(r.ContainerID, ""), "pod": v.r.index.Leases.ByAttachment(lease.Holder{PodUID: r.PodUID}),
			"host": v.r.index.Leases.ByHost(r.Host),
		} {
			if len(got) != 1 || got[0].ContainerID != r.ContainerID || got[0].Host != r.Host {
				v.t.Errorf("by %s: %+v", what, got)
			}
		}
	}
}

// kept checks that nobody has the address, and that it is kept for the machine.
func (v *vm) kept() {
	v.t.Helper()
	v.has()
	if l := v.r.lease(v.addr); !l.IsRetained() || l.Other != nil {
		v.t.Fatalf("%+v, want it kept", l)
	}
}

// TestMigration has the rows of the table of ADR 38 that need an API server.
func TestMigration(t *testing.T) {
	cluster.InstallKubeVirt(t)
	r, other := newReplica(t), newReplica(t)
	for name, test := range map[string]func(*vm){
		"succeeds": func(v *vm) {
			v.r.tap.Forget()
			p := v.migrates()
			for _, source := range []bool{true, false, false} {
				v.ends(v.source, source)
				v.has(p)
			}
			v.ends(p, true)
			v.kept()
			v.ends(p, false)
			v.ends(v.source, false)
			v.kept()
		},
		"costs one write": func(v *vm) {
			t := v.t
			p := v.target()
			v.r.tap.Forget()
			v.gets(v.r, p)
			if n := v.r.tap.Count(writes); n != 1 {
				t.Errorf("%d writes", n)
			}
			v.r.tap.Forget()
			v.gets(v.r, p)
			v.r.cost("the repeated ADD", 0, 1)
		},
		"the source asks again": func(v *vm) {
			p := v.migrates()
			v.gets(v.r, v.source)
			v.has(v.source, p)
		},
		"cancelled": func(v *vm) {
			t := v.t
			p := v.migrates()
			removePod(t, p)
			v.ends(p, true)
			v.has(v.source)
			v.ends(p, false)
			v.has(v.source)
			v.ends(v.source, true)
			v.kept()
		},
		"failed, and the next one succeeds": func(v *vm) {
			first := v.migrates()
			v.ends(first, true)
			next := v.target()
			v.gets(v.r, next)
			v.has(v.source, next)
			v.ends(v.source, true)
			v.ends(first, false)
			v.has(next)
		},
		"failed, no DEL came, and the next one begins": func(v *vm) {
			t := v.t
			first := v.migrates()
			next := v.target()
			_, err := v.r.Allocate(t.Context(), v.from(next))
			refused(t, err, ipam.ReasonClaimConflict, "have it already")
			removePod(t, first)
			v.gets(v.r, next)
			v.has(v.source, next)
			v.ends(first, false)
			v.has(v.source, next)
		},
		"migrated back": func(v *vm) {
			t := v.t
			p := v.migrates()
			v.ends(v.source, true)
			removePod(t, v.source)
			back := v.pod(v.host, v.migration())
			v.lists(p, back)
			v.gets(v.r, back)
			v.has(p, back)
			v.ends(p, true)
			v.ends(v.source, false)
			v.has(back)
		},
		"two replicas at once": func(v *vm) {
			t := v.t
			p := v.target()
			o := other.in(t)
			o.sees(p)
			controlplane.Until(t, "the other one knows the address", func() bool { _, ok := o.index.Leases.Get(v.addr); return ok })
			a, b := v.r.adding(t.Context(), v.from(p)), o.adding(t.Context(), v.from(p))
			for _, got := range []outcome{<-a, <-b} {
				if got.err != nil || !slices.Equal(got.addrs, []netip.Addr{v.addr}) {
					t.Errorf("%v, %v", got.addrs, got.err)
				}
			}
			v.has(v.source, p)
		},
		"the replica is lost before it answers": func(v *vm) {
			t := v.t
			p := v.target()
			mend := v.r.tap.On(writes, intercept.LoseAnswer(errReset))
			_, err := v.r.Allocate(t.Context(), v.from(p))
			mend()
			refused(t, err, ipam.ReasonOutcomeUnknown)
			o := other.in(t)
			o.sees(p)
			v.gets(o, p)
			v.gets(v.r, p)
			v.has(v.source, p)
		},
		"the write was not stored": func(v *vm) {
			t := v.t
			p := v.target()
			mend := v.r.tap.On(writes, intercept.Answer(500, metav1.StatusReasonInternalError, 0))
			_, err := v.r.Allocate(t.Context(), v.from(p))
			mend()
			refused(t, err, ipam.ReasonOutcomeUnknown)
			v.has(v.source)
			v.gets(v.r, p)
			v.has(v.source, p)
		},
		"its DEL overtakes it": func(v *vm) {
			t := v.t
			p := v.target()
			late := v.from(p)
			late.StartedAt = time.Now().Add(-time.Second)
			early := del(late)
			early.StartedAt = time.Now()
			v.r.del(early)
			_, err := v.r.Allocate(t.Context(), late)
			refused(t, err, ipam.ReasonContainerDeleted)
			v.has(v.source)
		},
		"another replica has its DEL": func(v *vm) {
			t := v.t
			p := v.target()
			other.in(t).del(del(v.from(p)))
			late := v.from(p)
			late.StartedAt = time.Now().Add(-time.Second)
			_, _ = v.r.Allocate(t.Context(), late)
			controlplane.Until(t, "the other replica ends it", func() bool { return v.r.lease(v.addr).Other == nil })
			v.has(v.source)
		},
		"new containers of both": func(v *vm) {
			t := v.t
			p := v.migrates()
			for _, pod := range []*corev1.Pod{v.source, p} {
				again := v.from(pod)
				again.ContainerID += "-again"
				if got := v.r.one(again); got != v.addr {
					t.Fatalf("got %s", got)
				}
				v.ends(pod, false) // the earlier container is no more
				_, err := v.r.Allocate(t.Context(), v.from(pod))
				refused(t, err, ipam.ReasonContainerSuperseded)
			}
			l := v.r.lease(v.addr)
			if l.ContainerID != v.source.Name+"-again" || l.Other == nil || l.Other.ContainerID != p.Name+"-again" ||
				!slices.Equal(l.Other.Superseded, []string{p.Name}) {
				t.Errorf("%+v beside %+v", l.Holder, l.Other)
			}
		},
		"release of the source's host": func(v *vm) {
			t := v.t
			p := v.migrates()
			gone, err := ReleaseHost(t.Context(), v.r.leases, v.host, time.Time{}, lease.Change{Verb: lease.VerbReleaseHost})
			if err != nil || len(gone) != 1 || gone[0].PodName != v.source.Name {
				t.Fatalf("%+v, %v", gone, err)
			}
			v.has(p)
			v.ends(v.source, false) // it is back, and its DEL late
			v.has(p)
		},
		"release of the target's host": func(v *vm) {
			t := v.t
			p := v.migrates()
			gone, err := ReleaseHost(t.Context(), v.r.leases, v.second, time.Time{}, lease.Change{Verb: lease.VerbReleaseHost})
			if err != nil || len(gone) != 1 || gone[0].PodName != p.Name {
				t.Fatalf("%+v, %v", gone, err)
			}
			v.has(v.source)
			v.ends(p, false)
			v.has(v.source)
		},
		"release of both hosts": func(v *vm) {
			t := v.t
			v.migrates()
			for _, h := range []netip.Addr{v.second, v.host, v.host} {
				if _, err := ReleaseHost(t.Context(), v.r.leases, h, time.Time{}, lease.Change{}); err != nil {
					t.Fatal(err)
				}
			}
			v.kept()
		},
		"by address and container": func(v *vm) {
			t := v.t
			p := v.migrates()
			l, released, err := v.r.ReleaseAddress(t.Context(), v.addr, p.Name, "", nil)
			if err != nil || !released || l.PodName != p.Name {
				t.Fatalf("%+v, %t, %v", l, released, err)
			}
			v.has(v.source)
		},
		"released by force": func(v *vm) {
			t := v.t
			v.migrates()
			both := func(lease.Lease) bool { return true }
			if _, err := ReleaseLease(t.Context(), v.r.leases, v.r.lease(v.addr), lease.Change{Verb: lease.VerbRelease},
				both); err != nil {
				t.Fatal(err)
			}
			v.kept()
		},
		"the claim is deleted": func(v *vm) {
			t := v.t
			p := v.migrates()
			if _, _, err := v.r.leases.Update(t.Context(), v.r.lease(v.addr), func(l lease.Lease) (lease.Lease, bool) {
				return lease.ChangeRetention(l, lease.Retention{})
			}, func(lease.Lease) bool { return true }); err != nil {
				t.Fatal(err)
			}
			v.has(v.source, p)
			v.ends(v.source, true)
			v.has(p)
			v.ends(p, true)
			if l := v.r.lease(v.addr); l.State != lease.Available {
				t.Errorf("%+v", l)
			}
		},
		"the object is deleted by hand": func(v *vm) {
			t := v.t
			p := v.migrates()
			o := &v1.BCSNetIP{ObjectMeta: metav1.ObjectMeta{Name: v.addr.String()}}
			if err := cluster.AdminFor(t).Delete(t.Context(), o); err != nil {
				t.Fatal(err)
			}
			v.ends(v.source, true)
			v.has(p)
			next := v.target()
			_, err := v.r.Allocate(t.Context(), v.from(next))
			refused(t, err, ipam.ReasonClaimConflict)
			v.ends(p, true)
			v.has()
		},
		"the source's pod is lost": func(v *vm) {
			t := v.t
			p := v.migrates()
			removePod(t, v.source)
			restarted := v.pod(v.host, nil)
			_, err := v.r.Allocate(t.Context(), v.from(restarted))
			refused(t, err, ipam.ReasonClaimConflict, p.Name) // the other one may have the machine
			removePod(t, p)
			if got := v.r.one(v.from(restarted)); got != v.addr {
				t.Errorf("got %s", got)
			}
			v.has(restarted)
			v.ends(v.source, false)
			v.ends(p, false)
			v.has(restarted)
		},
		"a host that is full": func(v *vm) {
			t := v.t
			v.pool.Spec.MaxPerHost = 1
			for _, r := range []*replica{r, other} {
				r.index.Pools.SetPool(poolOf(t, v.pool))
			}
			p := v.migrates() // each of the two hosts has one now
			taken := newPod(t, "full-"+v.name, v.second, v.r)
			_, err := v.r.Allocate(t.Context(), v.from(taken))
			refused(t, err, ipam.ReasonHostFull)
			v.ends(p, true)
			v.r.one(v.from(taken))
			next := v.target()
			_, err = v.r.Allocate(t.Context(), v.from(next))
			refused(t, err, ipam.ReasonHostFull)
			v.has(v.source)
		},
		"a replica does not know the field": func(v *vm) {
			t := v.t
			p := v.target()
			v.r.unaware.Store(true)
			_, err := v.r.Allocate(t.Context(), v.from(p))
			v.r.unaware.Store(false)
			refused(t, err, ipam.ReasonClaimConflict, "replica old")
			v.has(v.source)
			v.gets(v.r, p)
		},
	} {
		t.Run(name, func(t *testing.T) {
			test(newVM(t, r, other))
		})
	}
}

// TestMigrationIsProved: what a pod says of itself gives it nothing, and one that asks too early is served once
// KubeVirt has written it down.
func TestMigrationIsProved(t *testing.T) {
	cluster.InstallKubeVirt(t)
	r := newReplica(t)
	for name, test := range map[string]struct {
		make func(*vm) *corev1.Pod
		word string
		mend func(*vm, *corev1.Pod)
	}{
		"labels alone": {func(v *vm) *corev1.Pod {
			by := controlplane.KubeVirtObject("VirtualMachineInstanceMigration", "default", "none", map[string]any{})
			by.SetUID("5f0d1f52-0000-4000-8000-000000000000")
			p := v.pod(v.second, by)
			v.lists(v.source, p)
			return p
		}, "there is no migration none", nil},
		"not listed yet": {func(v *vm) *corev1.Pod { return v.pod(v.second, v.migration()) }, "does not list it",
			func(v *vm, p *corev1.Pod) { v.lists(v.source, p) }},
		"listed, and of no migration": {func(v *vm) *corev1.Pod {
			p := v.pod(v.second, nil)
			v.lists(v.source, p)
			return p
		}, "still has it", nil},
		"of a migration that has ended": {func(v *vm) *corev1.Pod {
			by := v.migration()
			v.phase(by, "Failed")
			p := v.pod(v.second, by)
			v.lists(v.source, p)
			return p
		}, "has ended", nil},
		"of another machine's migration": {func(v *vm) *corev1.Pod {
			p := v.pod(v.second, newVM(v.t, v.r).migration())
			v.lists(v.source, p)
			return p
		}, "there is no migration", nil},
		"beside the one that is named": {func(v *vm) *corev1.Pod {
			p := v.target()
			v.says(map[string]any{"targetPod": "another", "migrationUid": "m"}, "status", "migrationState")
			return p
		}, "migrates to pod another", func(v *vm, p *corev1.Pod) {
			v.says(p.Name, "status", "migrationState", "targetPod")
		}},
		"named, and the migration is over": {func(v *vm) *corev1.Pod {
			by := v.migration()
			p := v.pod(v.second, by)
			v.lists(v.source, p)
			v.says(map[string]any{
				"targetPod": p.Name, "migrationUid": string(by.GetUID()), "completed": true, "endTimestamp": "2026-05-04T03:02:01Z",
			}, "status", "migrationState")
			return p
		}, "has ended", nil},
		"the machine has ended": {func(v *vm) *corev1.Pod {
			p := v.target()
			v.says("Failed", "status", "phase")
			return p
		}, "has ended", nil},
	} {
		t.Run(name, func(t *testing.T) {
			v := newVM(t, r)
			p := test.make(v)
			for range 2 {
				_, err := v.r.Allocate(t.Context(), v.from(p))
				refused(t, err, ipam.ReasonClaimConflict, test.word)
				v.has(v.source)
			}
			if test.mend != nil {
				test.mend(v, p)
				v.gets(v.r, p)
				v.has(v.source, p)
			}
		})
	}
	t.Run("KubeVirt goes and comes back", func(t *testing.T) {
		v := newVM(t, r)
		p := v.target()
		cluster.RemoveKubeVirt(t)
		_, err := v.r.Allocate(t.Context(), v.from(p))
		refused(t, err, ipam.ReasonClaimConflict, "there is no VirtualMachineInstance")
		v.has(v.source)
		cluster.InstallKubeVirt(t)
		again := newVM(t, r)
		again.gets(again.r, again.target())
	})
}
