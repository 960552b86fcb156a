package groups_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/httpapi/wire"
	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/judge"
	"github.com/bcsnet/bcsnet/test/plugin"
	"github.com/bcsnet/bcsnet/test/site"
)

// moving is a parent of 30 addresses whose groups come, grow, shrink, take each other's range and go, while pods ask
// three replicas for addresses.
type moving struct {
	*site.Site
	parent  *v1.BCSNetPool
	urls    []string
	history *judge.History
	// by counts the addresses that were given, by pool.
	by   map[string]*atomic.Int64
	over atomic.Bool
}

const (
	movingGroups = 3
	// longEnv has the groups move for as long as the test was made for: make test-groups.
	longEnv = "GROUPS_LONG"
)

// preferred makes a group from which pods draw before they draw from its parent.
func preferred(s *v1.BCSNetPoolSpec) { s.Parent, s.Hosts, s.Priority = "moving", nil, 10 }

func movingName(i int) string { return fmt.Sprintf("moving-%d", i) }

// TestGroupsMoveWhileAsked: whatever becomes of the groups, no address has two holders at any time; and when nobody
// changes them any more, each pool has and serves what its spec says, and nothing stays behind.
func TestGroupsMoveWhileAsked(t *testing.T) {
	controlplane.TakesLong(t)
	t.Parallel()
	s, own, _ := aloneWith(t)
	length := 25 * time.Second
	if os.Getenv(longEnv) != "" {
		length = 70 * time.Second
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	m := &moving{Site: s, history: judge.NewHistory(), by: map[string]*atomic.Int64{"moving": {}}}
	for i := range movingGroups {
		m.by[movingName(i)] = &atomic.Int64{}
	}
	m.parent = m.NewPool("moving", nil, "10.72.0.20-10.72.0.49")
	m.WantReady(m.parent)
	m.urls = []string{m.URL}
	for i := range 2 {
		r, err := own.StartController(t.Context(), controlplane.ControllerOptions{Name: fmt.Sprintf("moving-replica-%d", i)})
		if err != nil {
			t.Fatal(err)
		}
		m.urls = append(m.urls, r.URL)
		t.Cleanup(func() {
			if err := r.Stop(); err != nil {
				t.Error(err)
			}
		})
	}
	var pods sync.WaitGroup
	for i := range 8 {
		name := fmt.Sprintf("moving-pod-%d", i)
		m.NewPod(name)
		pods.Go(func() { m.pod(i, name, rand.New(rand.NewPCG(seed, uint64(i)))) })
	}
	rng := rand.New(rand.NewPCG(seed, 99))
	for until := time.Now().Add(length); time.Now().Before(until) && !t.Failed(); {
		m.operate(rng)
		<-time.After(time.Duration(2+rng.IntN(4)) * time.Second)
	}
	m.over.Store(true)
	pods.Wait()
	if illegal := m.history.Illegal(); illegal != "" {
		t.Errorf("an address had two holders: %s", illegal)
	}
	for name, n := range m.by {
		t.Logf("%d addresses of pool %s", n.Load(), name)
	}
	m.settle()
}

// pod asks for an address at one replica and gives it back at another, again and again, each time as another container.
func (m *moving) pod(client int, name string, rng *rand.Rand) {
	send := func(method, container string) (plugin.Answer, time.Duration, time.Duration) {
		from := m.history.Now()
		a, err := plugin.Ask(context.Background(), m.Caller, method, m.urls[rng.IntN(len(m.urls))], wire.AllocateRequest{
			Host: m.Host, ContainerID: container, PodName: name, PodNamespace: "default",
		})
		if err != nil {
			m.Errorf("%s: %v", name, err)
		}
		return a, from, m.history.Now()
	}
	for n := 0; !m.over.Load() && !m.Failed(); n++ {
		container := fmt.Sprintf("%s-%d", name, n)
		a, from, to := send(http.MethodPost, container)
		if a.Code != 0 {
			if !a.Temporary() {
				m.Errorf("%s: %s: %s", name, a.Reason, a.Message)
			}
			<-time.After(50 * time.Millisecond)
			continue
		}
		m.history.Add(client, judge.Change{Addr: a.Address.IPAddr, Pod: name, Container: container, Take: true}, from, to)
		if count := m.by[a.Address.Pool]; count == nil {
			m.Errorf("%s has %s of pool %s", name, a.Address.IPAddr, a.Address.Pool)
		} else {
			count.Add(1)
		}
		<-time.After(time.Duration(rng.IntN(300)) * time.Millisecond)
		d, from, to := send(http.MethodDelete, container)
		if d.Code != 0 {
			m.Errorf("%s: DEL: %s: %s", name, d.Reason, d.Message)
		}
		m.history.Add(client, judge.Change{Addr: a.Address.IPAddr, Pod: name, Container: container}, from, to)
	}
}

// operate does one thing to a group: makes it, gives it another range, which may be in part another one's, or deletes
// it, sometimes by force; or has the parent shrink or grow.
func (m *moving) operate(rng *rand.Rand) {
	ctx := context.Background()
	if rng.IntN(8) == 0 {
		first := 20 + rng.IntN(2)*6
		m.set(m.parent, func(s *v1.BCSNetPoolSpec) {
			s.AvailableIPs = []string{fmt.Sprintf("10.72.0.%d-10.72.0.49", first)}
		})
		return
	}
	i := rng.IntN(movingGroups)
	// Each has ten addresses of its own, and reaches into the next one's at times.
	from := 20 + 10*i + rng.IntN(6)
	ranges := []string{fmt.Sprintf("10.72.0.%d-10.72.0.%d", from, min(from+rng.IntN(8), 49))}
	g := &v1.BCSNetPool{ObjectMeta: metav1.ObjectMeta{Name: movingName(i)}}
	switch err := m.Admin.Get(ctx, client.ObjectKeyFromObject(g), g); {
	case apierrors.IsNotFound(err):
		m.NewPool(g.Name, preferred, ranges...)
	case err != nil:
		m.Error(err)
	case !g.DeletionTimestamp.IsZero() && rng.IntN(2) == 0:
		byForce(m.Site, g)
	case rng.IntN(4) == 0:
		if err := client.IgnoreNotFound(m.Admin.Delete(ctx, g)); err != nil {
			m.Error(err)
		}
	default:
		m.set(g, func(s *v1.BCSNetPoolSpec) { s.AvailableIPs = ranges })
	}
}

// set changes the spec of a pool that may have gone.
func (m *moving) set(p *v1.BCSNetPool, change func(*v1.BCSNetPoolSpec)) {
	for {
		err := m.Admin.Get(context.Background(), client.ObjectKeyFromObject(p), p)
		if err == nil {
			change(&p.Spec)
			err = m.Admin.Update(context.Background(), p)
		}
		switch {
		case apierrors.IsConflict(err):
			continue
		case client.IgnoreNotFound(err) != nil:
			m.Error(err)
		}
		return
	}
}

// settle gives every group five addresses of its own and waits until all is as the specs say.
func (m *moving) settle() {
	m.Helper()
	m.set(m.parent, func(s *v1.BCSNetPoolSpec) { s.AvailableIPs = []string{"10.72.0.20-10.72.0.49"} })
	owner := map[netip.Addr]string{}
	for n := 20; n < 50; n++ {
		owner[netip.AddrFrom4([4]byte{10, 72, 0, byte(n)})] = "moving"
	}
	all := []*v1.BCSNetPool{m.parent}
	for i := range movingGroups {
		g := &v1.BCSNetPool{ObjectMeta: metav1.ObjectMeta{Name: movingName(i)}}
		if err := m.Admin.Get(m.Context(), client.ObjectKeyFromObject(g), g); err != nil || !g.DeletionTimestamp.IsZero() {
			if err == nil {
				m.WantGone(g)
			}
			g = m.NewPool(movingName(i), preferred, "10.72.0.20")
		}
		m.set(g, func(s *v1.BCSNetPoolSpec) {
			s.AvailableIPs = []string{fmt.Sprintf("10.72.0.%d-10.72.0.%d", 20+10*i, 24+10*i)}
		})
		for n := 20 + 10*i; n < 25+10*i; n++ {
			owner[netip.AddrFrom4([4]byte{10, 72, 0, byte(n)})] = g.Name
		}
		all = append(all, g)
	}
	for _, p := range all {
		want := int64(5)
		if p == m.parent {
			want = 15
		}
		m.WantStatus(p, want, want, 0)
		m.WantReady(p)
		m.WantCondition(p, v1.ConditionOverlap, metav1.ConditionFalse, v1.ReasonNoOverlap)
		m.WantCondition(p, v1.ConditionDraining, metav1.ConditionFalse, v1.ReasonNothingToDrain)
	}
	controlplane.EventuallyWithin(m.T, site.Patience, func() error {
		var ips v1.BCSNetIPList
		if err := m.Admin.List(m.Context(), &ips); err != nil {
			return err
		}
		for i := range ips.Items {
			ip := &ips.Items[i]
			if a, err := netip.ParseAddr(ip.Name); err != nil || owner[a] == "" {
				continue
			} else if ip.Spec.Pool != owner[a] || ip.Status.Status != v1.IPAvailable {
				return fmt.Errorf("%s is %s of pool %s, want it free of pool %s", a, ip.Status.Status, ip.Spec.Pool, owner[a])
			}
		}
		return nil
	})
	pod := "moving-pod-0"
	for _, addr := range []string{"10.72.0.20", "10.72.0.31", "10.72.0.42", "10.72.0.49"} {
		if a := m.Ask(http.MethodPost, pod, addr); a.Code != 0 || a.Address.Pool != owner[netip.MustParseAddr(addr)] {
			m.Errorf("%s: %+v, want it of pool %s", addr, a, owner[netip.MustParseAddr(addr)])
		}
		release(m.Site, pod)
	}
}
