package allocator

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// What a network no longer lists is given up where its pod is gone, of its host and of that network alone, by one
// write each.
func TestCollectNetwork(t *testing.T) {
	s, at := newSite("9-30"), ago()
	r := newReplica(t, s.pool)
	second := s.host.Next()
	s.pool.Spec.Hosts = append(s.pool.Spec.Hosts, second.String())
	r.index.Pools.SetPool(poolOf(t, s.pool))
	got := map[string]netip.Addr{}
	var gone []Request
	add := func(name string, q Request) Request {
		got[name] = r.one(q)
		gone = append(gone, q)
		return q
	}
	listed := add("listed", r.by(s, "listed", "pods", at(0)))
	add("forgotten", r.by(s, "forgotten", "pods", at(0)))
	add("other network", r.by(s, "other", "storage", at(0)))
	add("no network", r.by(s, "none", "", at(0)))
	add("at that time", r.by(s, "same", "pods", at(10)))
	add("later", r.by(s, "later", "pods", at(11)))
	elsewhere := s
	elsewhere.host = second
	add("another host", r.by(elsewhere, "elsewhere", "pods", at(0)))
	net1 := r.by(s, "net1", "pods", at(0))
	net1.IfName = "net1"
	add("another interface", net1)
	onEth0 := net1
	onEth0.IfName = ""
	owner := s.vm("owner")
	owner.ContainerID, owner.CNINetwork, owner.StartedAt = owner.Owner+"-c", "pods", at(0)
	got["an owner that is no pod"] = r.one(owner)
	running := r.by(s, "running", "pods", at(0))
	got["running"] = r.one(running)
	r.aged(slices.Collect(maps.Values(got))...)
	gone = append(gone, r.by(s, "young", "pods", at(0)))
	r.one(gone[len(gone)-1])
	latest := r.latest(s, "pods")
	r.vanish(gone...)
	r.tap.Forget()
	want := []netip.Addr{got["forgotten"], got["another interface"]}
	slices.SortFunc(want, netip.Addr.Compare)
	done := r.collected(s, "pods", at(10), latest, listed, onEth0)
	if freed := leased(done.Released); !slices.Equal(freed, want) {
		t.Errorf("freed %v of %v, want %v", freed, got, want)
	}
	stay := []netip.Addr{got["an owner that is no pod"], got["running"]}
	slices.SortFunc(stay, netip.Addr.Compare)
	if got := leased(done.Running); !slices.Equal(got, stay) || len(done.Waiting) != 0 {
		t.Errorf("running are %v, want %v; waiting %v", got, stay, leased(done.Waiting))
	}
	if len(done.Kept) != 5 || !slices.Contains(done.Kept, Attachment{running.ContainerID, lease.DefaultIfName}) {
		t.Errorf("kept are %v", done.Kept)
	}
	r.cost("GC", 2, 2) // of each that goes one read of its pod
	if freed := r.collect(s, "pods", at(10), latest, listed); len(freed) != 0 {
		t.Errorf("a second time freed %v", freed)
	}
	if freed := r.collect(s, "", at(60), latest, listed); len(freed) != 0 {
		t.Errorf("no network freed %v", freed)
	}
	r.cost("GC of nothing", 0, 0)
	if l := r.lease(got["listed"]); l.CNINetwork != "pods" || l.State != lease.Active {
		t.Errorf("listed: %+v", l.Holder)
	}
}

// A list is a hint: whatever it has, a pod that is there keeps its address. Of one that is gone containers may still
// run, unless the list has a container that its runtime attached by this network later.
func TestCollectNetworkByThePod(t *testing.T) {
	for name, c := range map[string]struct {
		// change changes the pod or its lease once it has its address.
		change func(*replica, Request, netip.Addr)
		// none: the list is empty, as a runtime sends it for a network that Multus attaches; before: all that it has
		// was attached earlier.
		none, before            bool
		freed, running, waiting int
	}{
		"running":                       {running: 1},
		"running, of an empty list":     {none: true, running: 1},
		"gone":                          {change: (*replica).isGone, freed: 1},
		"gone, of an empty list":        {change: (*replica).isGone, none: true, waiting: 1},
		"gone, of a list of before":     {change: (*replica).isGone, before: true, waiting: 1},
		"ended":                         {change: (*replica).isEnded, freed: 1},
		"ended, of an empty list":       {change: (*replica).isEnded, none: true, waiting: 1},
		"another pod has its name":      {change: (*replica).isReplaced, freed: 1},
		"static, without a mirror":      {change: (*replica).isStatic, waiting: 1},
		"it takes an hour to end, gone": {change: (*replica).isPatient, freed: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, at := newSite("9-12"), ago()
			r := newReplica(t, s.pool)
			earlier := r.latest(s, "pods")
			q := r.by(s, "web", "pods", at(0))
			addr := r.one(q)
			if c.change != nil {
				c.change(r, q, addr)
			}
			if !c.before {
				r.aged(addr)
			} else {
				r.aged(r.index.Leases.ByHost(s.host)[0].Addr, r.index.Leases.ByHost(s.host)[1].Addr)
				r.aged(r.index.Leases.ByContainer(earlier.ContainerID, "")[0].Addr)
			}
			listed := []Request{earlier}
			if c.none {
				listed = nil
			}
			done := r.collected(s, "pods", at(10), listed...)
			if len(done.Released) != c.freed || len(done.Running) != c.running || len(done.Waiting) != c.waiting {
				t.Errorf("released %v, running %v, waiting %v", leased(done.Released), leased(done.Running),
					leased(done.Waiting))
			}
			if l := r.lease(addr); (l.State == lease.Active) != (c.freed == 0) {
				t.Errorf("it is %v", l.State)
			}
		})
	}
}

// A list as long as may be, and longer than a node ever has pods, costs no read and no write of what it has.
func TestCollectNetworkOfManyAttachments(t *testing.T) {
	s, at := newSite("9-12"), ago()
	r := newReplica(t, s.pool)
	latest := r.latest(s, "pods")
	q := r.by(s, "web", "pods", at(0))
	addr := r.one(q)
	r.aged(addr)
	listed := []Request{latest}
	for i := range 12000 {
		listed = append(listed, Request{ContainerID: fmt.Sprint("c", i)})
	}
	r.tap.Forget()
	if done := r.collected(s, "pods", at(10), listed...); len(done.Running) != 1 || len(done.Released) != 0 {
		t.Errorf("running %v, released %v", leased(done.Running), leased(done.Released))
	}
	r.cost("GC", 0, 0)
}

// An earlier container of the pod that is listed keeps the address of the newer one, and what a claim keeps is
// Reserved.
func TestCollectNetworkOfPods(t *testing.T) {
	s, at := newSite("9-30"), ago()
	r := newReplica(t, s.pool)
	p, q := r.by(s, "gc-moved", "pods", at(0)), r.by(s, "gc-kept", "pods", at(0))
	terms.set(q.PodName, Constraints{Retention: lease.Retention{Claim: "default/" + q.PodName, Fixed: true,
		PodPrimaryKey: "default/" + q.PodName}})
	old := p
	moved := r.one(p)
	p.ContainerID, p.StartedAt = s.pool.Name+"-new", at(1)
	if again := r.one(p); again != moved {
		t.Fatalf("%s, then %s", moved, again)
	}
	kept := r.one(q)
	r.aged(moved, kept)
	latest := r.latest(s, "pods")
	r.vanish(p, q)
	if freed := r.collect(s, "pods", at(10), latest, old); !slices.Equal(freed, []netip.Addr{kept}) {
		t.Errorf("freed %v, want %s", freed, kept)
	}
	if l := r.lease(kept); !l.IsRetained() || l.CNINetwork != "" {
		t.Errorf("kept: %+v", l)
	}
	if freed := r.collect(s, "pods", at(10), latest); !slices.Equal(freed, []netip.Addr{moved}) {
		t.Errorf("freed %v, want %s", freed, moved)
	}
}

// All addresses of an interface go together.
func TestCollectNetworkOfTwoFamilies(t *testing.T) {
	s, at := newSite("9-12"), ago()
	s.pool.Spec.Network = s.pool.Name
	six := s.pool.DeepCopy()
	six.Name, six.Spec.Net, six.Spec.Mask = s.pool.Name+"-6", fmt.Sprintf("fd00:6c:%x::", sites.Load()), 64
	six.Spec.Gateway, six.Spec.AvailableIPs = six.Spec.Net+"1", []string{six.Spec.Net + "9", six.Spec.Net + "a"}
	r := newReplica(t, s.pool, six)
	q := r.by(s, "both", "pods", at(0))
	got := r.add(q)
	if len(got) != 2 {
		t.Fatalf("%v", got)
	}
	r.aged(got...)
	latest := r.by(s, "latest", "pods", at(0))
	r.add(latest)
	r.vanish(q)
	if freed := r.collect(s, "pods", at(10), latest); len(freed) != 2 {
		t.Errorf("freed %v of %v", freed, got)
	}
}

// Whatever the clock of the host says, and although it is set right between an ADD and the call: what was bound five
// minutes ago, and asked for before the call, may go. What is younger stays: its pod may be set up still, and the
// list was made without it.
func TestCollectNetworkByWrongClocks(t *testing.T) {
	for name, c := range map[string]struct{ atADD, atGC time.Duration }{
		"right":                  {},
		"hours behind":           {-5 * time.Hour, -5 * time.Hour},
		"hours ahead":            {5 * time.Hour, 5 * time.Hour},
		"in another year":        {9000 * time.Hour, 9000 * time.Hour},
		"minutes behind":         {-270 * time.Second, -270 * time.Second},
		"behind, then set right": {-4 * time.Minute, 0},
		"hours behind, then set": {-5 * time.Hour, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite("9-12")
			r := newReplica(t, s.pool)
			first := r.by(s, "before", "pods", time.Now().Add(c.atADD))
			before := r.one(first)
			latest := r.latest(s, "pods")
			r.vanish(first)
			if freed := r.collect(s, "pods", time.Now().Add(c.atGC+time.Second), latest); len(freed) != 0 {
				t.Errorf("freed %v, which an ADD may have taken just now", freed)
			}
			r.aged(before)
			g := NetworkGC{
				Host: s.host, CNINetwork: "pods", Attachments: []Attachment{{ContainerID: latest.ContainerID}},
				StartedAt: time.Now().Add(c.atGC), ArrivedAt: r.leases.Now(),
			}
			next := r.by(s, "after", "pods", time.Now().Add(c.atGC))
			after := r.one(next)
			r.aged(after)
			r.vanish(next)
			done, err := r.CollectNetwork(t.Context(), g)
			if freed := leased(done.Released); err != nil || !slices.Equal(freed, []netip.Addr{before}) {
				t.Errorf("freed %v, %v, want %s; of after the call is %s", freed, err, before, after)
			}
		})
	}
}

// Both ends of a machine that migrates count for their own hosts and containers.
func TestCollectNetworkOfAMachine(t *testing.T) {
	cluster.InstallKubeVirt(t)
	r := newReplica(t)
	v := newVM(t, r)
	target := v.target()
	from := v.from(target)
	from.CNINetwork, from.StartedAt = "pods", time.Now().Add(-time.Second)
	if got := r.one(from); got != v.addr {
		t.Fatalf("%s, want %s", got, v.addr)
	}
	r.aged(v.addr)
	there := v.site
	there.host = v.second
	latest := r.latest(there, "pods")
	if freed := r.collect(there, "pods", time.Now(), latest); len(freed) != 0 { // its pod is there
		t.Errorf("the target freed %v", freed)
	}
	r.vanish(from)
	if freed := r.collect(v.site, "pods", time.Now(), latest); len(freed) != 0 { // asked for without a network
		t.Errorf("the source freed %v", freed)
	}
	if freed := r.collect(there, "pods", time.Now(), latest); len(freed) != 1 {
		t.Errorf("the target freed %v", freed)
	}
	if l := r.lease(v.addr); l.Other != nil || l.State != lease.Active ||
		l.ContainerID != v.from(v.source).ContainerID {
		t.Errorf("left is %+v", l)
	}
}

// The host that a machine leaves collects its own attachment alone: the address stays the target's.
func TestCollectNetworkOfTheSource(t *testing.T) {
	cluster.InstallKubeVirt(t)
	r := newReplica(t)
	v := newVM(t, r)
	source := v.from(v.source)
	source.ContainerID, source.CNINetwork = source.ContainerID+"-again", "pods"
	r.one(source)
	target := v.from(v.target())
	target.CNINetwork = "pods"
	if got := r.one(target); got != v.addr {
		t.Fatalf("%s, want %s", got, v.addr)
	}
	r.aged(v.addr)
	latest := r.latest(v.site, "pods")
	r.vanish(source)
	if freed := r.collect(v.site, "pods", time.Now(), latest); len(freed) != 1 {
		t.Errorf("the source freed %v", freed)
	}
	if l := r.lease(v.addr); l.Other != nil || l.State != lease.Active || l.ContainerID != target.ContainerID {
		t.Errorf("left is %+v", l)
	}
	if freed := r.collect(v.site, "pods", time.Now().Add(time.Second), latest); len(freed) != 0 {
		t.Errorf("the source freed %v more", freed)
	}
}
