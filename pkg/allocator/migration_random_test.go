package allocator

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/bcsnet/bcsnet/test/controlplane"

	corev1 "k8s.io/api/core/v1"

	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// migrant is a machine that does anything that a machine does, in any order, at any of several replicas.
type migrant struct {
	*vm
	rng      *rand.Rand
	replicas []*replica
	late     sync.WaitGroup
	// live are the pods whose ADD was answered and whose DEL has not begun, with their containers.
	live map[*corev1.Pod]string
	done map[string]int
}

// TestMigrationsAtRandom: whatever machines do, each pod that lives has the machine's address, alone or with the other
// one, and nobody else ever has it: not at the moment of any answer, and not in what is stored.
func TestMigrationsAtRandom(t *testing.T) {
	controlplane.TakesLong(t)
	cluster.InstallKubeVirt(t)
	replicas := []*replica{newReplica(t), newReplica(t), newReplica(t)}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	var machines sync.WaitGroup
	var all []*migrant
	for i := range 4 {
		m := &migrant{
			vm: newVM(t, replicas[0], replicas[1:]...), rng: rand.New(rand.NewPCG(seed, uint64(i))), replicas: replicas,
			done: map[string]int{},
		}
		m.live = map[*corev1.Pod]string{m.source: m.source.Name}
		all = append(all, m)
	}
	for _, m := range all {
		machines.Go(func() {
			for n := range 25 {
				m.step(n)
				m.check()
			}
			m.late.Wait()
			m.check()
		})
	}
	machines.Wait()
	for _, m := range all {
		if t.Failed() {
			break
		}
		for p, container := range m.live {
			m.end(p, container)
		}
		m.late.Wait()
		if l := m.r.lease(m.addr); !l.IsRetained() {
			t.Errorf("after all: %+v", l)
		}
		t.Logf("%s: %v", m.name, m.done)
	}
}

func (m *migrant) step(n int) {
	pods := slices.SortedFunc(func(yield func(*corev1.Pod) bool) {
		for p := range m.live {
			if !yield(p) {
				return
			}
		}
	}, func(a, b *corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	p := pods[m.rng.IntN(len(pods))]
	switch what := m.rng.IntN(10); {
	case what < 2:
		m.done["repeated ADD"]++
		m.ask(p, m.live[p])
	case what < 4: // its sandbox is made anew; the DEL of the one before comes before, beside or after
		m.done["new container"]++
		old := m.live[p]
		next := fmt.Sprint(p.Name, "-", n)
		delete(m.live, p)
		leaves := len(pods) > 1 && p == pods[0]
		if !leaves {
			m.del(old, p, m.rng.IntN(2) == 0)
		}
		m.ask(p, next)
		if m.live[p] = next; leaves { // whoever gives its attachment up beside the target does not get it back
			m.del(old, p, true)
		}
	case len(pods) == 1:
		m.done["migration"]++
		host := m.second
		if m.from(p).Host == host {
			host = m.host
		}
		next := m.pod(host, m.migration())
		m.lists(p, next)
		m.ask(next, next.Name)
		m.live[next] = next.Name
	default: // it succeeds, or fails
		m.done["end"]++
		m.end(p, m.live[p])
	}
}

// end ends a pod, whose DEL may come after its object has gone.
func (m *migrant) end(p *corev1.Pod, container string) {
	delete(m.live, p)
	if m.rng.IntN(2) == 0 {
		m.del(container, p, false)
		removePod(m.t, p)
		return
	}
	removePod(m.t, p)
	m.del(container, p, true)
}

// del sends the DEL of a container to any replica, often twice; a late one comes while life goes on.
func (m *migrant) del(container string, p *corev1.Pod, late bool) {
	request := del(m.from(p))
	request.ContainerID = container
	times, first := 1+m.rng.IntN(2), m.rng.IntN(len(m.replicas))
	send := func(r *replica) {
		if _, err := r.Release(m.t.Context(), request); err != nil {
			m.t.Errorf("DEL of %s: %v", container, err)
		}
	}
	for i := range times {
		r, after := m.replicas[(first+i)%len(m.replicas)], time.Duration(m.rng.IntN(150))*time.Millisecond
		if !late && i == 0 {
			send(r)
			continue
		}
		m.late.Go(func() {
			<-time.After(after)
			send(r)
		})
	}
}

// ask sends the ADD of a container to one replica, or to two at once: each answers with the machine's address.
func (m *migrant) ask(p *corev1.Pod, container string) {
	request := m.from(p)
	request.ContainerID, request.StartedAt = container, time.Now()
	first := m.rng.IntN(len(m.replicas))
	var asked sync.WaitGroup
	for i := range 1 + m.rng.IntN(2) {
		r := m.replicas[(first+i)%len(m.replicas)]
		asked.Go(func() {
			got, err := r.Allocate(m.t.Context(), request)
			if err != nil || !slices.Equal(addrs(got), []netip.Addr{m.addr}) {
				m.t.Errorf("ADD of %s got %v, %v, want %s", container, addrs(got), err, m.addr)
			}
		})
	}
	asked.Wait()
}

// check compares what is stored with the pods that live.
func (m *migrant) check() {
	l := m.r.lease(m.addr)
	for p, container := range m.live {
		if _, has := l.From(func(l lease.Lease) bool { return l.State == lease.Active && l.ContainerID == container }); !has {
			m.t.Errorf("live pod %s (%s) lost %s: %s, %+v beside %+v", p.Name, container, m.addr, l.State, l.Holder, l.Other)
		}
	}
	for side := range l.Attachments() {
		if side.State != lease.Active || side.PodName == "" || side.Namespace != "default" ||
			side.Claim != m.keyed("").Claim {
			m.t.Errorf("%s is %s, of %+v", m.addr, side.State, side.Holder)
		}
	}
}
