package http_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/controller/leadership"
	"github.com/bcsnet/bcsnet/pkg/httpapi"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

// A leader that is asked to end lets another lead before it has answered its last requests.
func TestHandOver(t *testing.T) {
	t.Parallel()
	g := newGroup(t)
	g.lease = time.Hour // nobody waits for its end
	p := newProxy(t, shared.cluster)
	leader := g.start(p.config())
	leads(t, leader.caller())
	follower := g.start(account(t, shared.cluster))
	s := newSite(t)
	s.pool(5, nil)
	s.knownTo(leader.caller(), follower.caller())

	held := newGate(s)
	p.set(held.leaseWrites)
	added := inBackground(t.Context(), leader.caller(), "POST", prefix, object{"host": s.Host, "owner": s.owner("vm")})
	held.waitArrived(t)
	leader.End()
	leads(t, follower.caller())
	select {
	case <-leader.Ended():
		t.Error("the old leader has ended before its last request was answered")
	default:
	}
	close(held.open)
	(<-added).must(t).done(t)
}

// A Lease that is deleted by hand, or taken by somebody else, ends no process: one replica leads, all serve.
func TestLeaseIsTakenAway(t *testing.T) {
	t.Parallel()
	g := newGroup(t)
	a, b := g.led()
	s := newSite(t)
	s.pool(20, nil)
	s.knownTo(a.caller(), b.caller())
	serve := func(name string) {
		for i, c := range []caller{a.caller(), b.caller()} {
			body := object{"host": s.Host, "owner": s.owner(fmt.Sprint(name, i))}
			c.do(t, "POST", prefix, body).done(t)
			c.do(t, "DELETE", prefix, body).done(t)
		}
	}
	oneLeads := func() {
		controlplane.Eventually(t, func() error {
			x, y := a.caller().info(t), b.caller().info(t)
			if x.Replica.Leading == y.Replica.Leading || x.Leader == nil || y.Leader == nil || x.Leader.ID != y.Leader.ID {
				return fmt.Errorf("%+v and %+v", x, y)
			}
			return nil
		})
	}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: g.Namespace, Name: leadership.LeaseName}}
	for i := range 3 {
		if err := shared.admin.Delete(t.Context(), lease); err != nil {
			t.Fatal(err)
		}
		serve(fmt.Sprint("deleted", i))
		controlplane.Eventually(t, func() error {
			return shared.admin.Get(t.Context(), client.ObjectKeyFromObject(lease),
				lease)
		})
		oneLeads()
	}
	g.takeLease("somebody", "")
	controlplane.Eventually(t, func() error {
		if x, y := a.caller().info(t), b.caller().info(t); x.Replica.Leading || y.Replica.Leading {
			return fmt.Errorf("%+v and %+v", x, y)
		}
		return nil
	})
	serve("taken")
	if err := shared.admin.Delete(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
	oneLeads()
	serve("back")
}

// A leader that cannot reach the API server for longer than its Lease lasts goes on as a follower of the one that
// leads by then.
func TestLeaderIsCutOff(t *testing.T) {
	t.Parallel()
	g := newGroup(t)
	g.lease = 3 * time.Second
	p := newProxy(t, shared.cluster)
	first := g.start(p.config())
	leads(t, first.caller())
	second := g.start(account(t, shared.cluster))
	p.set(away)
	leads(t, second.caller())
	controlplane.Eventually(t, func() error {
		if first.caller().info(t).Replica.Leading {
			return errors.New("the one that is cut off leads")
		}
		return nil
	})
	p.set(nil)
	s := newSite(t)
	s.pool(5, nil)
	s.knownTo(first.caller(), second.caller())
	forwards(t, first.caller(), idOf(t, second.caller()))
	s.call = first.caller()
	s.add(object{"host": s.Host, "owner": s.owner("vm")}).answeredBy(t, idOf(t, second.caller())).done(t)
}

// program2 are two replicas as programs on a control plane of their own, with the rights that the manifests give them.
type program2 struct {
	cp    *controlplane.ControlPlane
	admin client.Client
	all   [2]*controlplane.Controller
}

func startTwo(t *testing.T) program2 {
	t.Helper()
	cp := controlplane.ForTest(t)
	if err := cp.InstallManifests(t.Context()); err != nil {
		t.Fatal(err)
	}
	two := program2{cp: cp, admin: adminFor(t, cp)}
	for i := range two.all {
		c, err := cp.StartController(t.Context(), controlplane.ControllerOptions{
			Name: fmt.Sprint("replica-", i), Binary: program(t),
			Args: []string{
				"--leader-elect-lease-duration=15s", "--leader-elect-renew-deadline=10s", "--leader-elect-retry-period=500ms",
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		if two.all[i] = c; i == 0 {
			leads(t, two.caller(0))
		}
	}
	pool := &v1.BCSNetPool{ObjectMeta: metav1.ObjectMeta{Name: "all"}, Spec: v1.BCSNetPoolSpec{
		Net: "10.0.0.0", Mask: 24, Gateway: "10.0.0.1", Hosts: []string{"10.0.0.11"},
		AvailableIPs: []string{"10.0.0.20-10.0.0.200"},
	}}
	if err := two.admin.Create(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	for i := range two.all {
		controlplane.Eventually(t, func() error {
			if a := two.caller(i).do(t, "GET", prefix+"/pool/all", nil); a.Code != 0 {
				return fmt.Errorf("%s", a.Raw)
			}
			return nil
		})
	}
	forwards(t, two.caller(1), idOf(t, two.caller(0)))
	return two
}

func (p program2) caller(i int) caller { return caller{p.all[i].URL} }

// try asks one replica and, where that has no answer, the other, as a client does.
func (p program2) try(ctx context.Context, first int, method string, body object) error {
	var errs []error
	for i := range p.all {
		a, err := p.caller((first+i)%len(p.all)).send(ctx, method, prefix, body)
		if err == nil && a.Code == 0 && a.Status == 200 {
			return nil
		}
		if err == nil {
			err = errors.New(string(a.Raw))
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// load has callers ask for addresses and give them back until stop is closed, and returns the longest time that
// one call took.
func (p program2) load(t *testing.T, stop <-chan struct{}, turns chan<- int) (slowest time.Duration) {
	t.Helper()
	const callers = 4
	took := make(chan time.Duration, callers)
	for i := range callers {
		go func() {
			var worst time.Duration
			defer func() { took <- worst }()
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				body := object{"host": "10.0.0.11", "owner": fmt.Sprintf("vm-%d-%d", i, n), "containerID": newID()}
				for _, method := range []string{"POST", "DELETE"} {
					began := time.Now()
					if err := p.try(t.Context(), (i+n)%2, method, body); err != nil {
						t.Errorf("%s %v: %v", method, body, err)
						return
					}
					worst = max(worst, time.Since(began))
				}
				select {
				case turns <- n:
				default:
				}
			}
		}()
	}
	for range callers {
		slowest = max(slowest, <-took)
	}
	return slowest
}

// during runs the load and, when it is under way, something else.
func (p program2) during(t *testing.T, what string, do func()) {
	t.Helper()
	stop, turns, ended := make(chan struct{}), make(chan int), make(chan struct{})
	go func() {
		defer close(ended)
		t.Logf("%s: the slowest call took %s", what, p.load(t, stop, turns))
	}()
	pass := func() {
		for range 40 {
			select {
			case <-turns:
			case <-ended:
				return
			}
		}
	}
	pass()
	do()
	pass()
	close(stop)
	<-ended
	controlplane.Eventually(t, func() error {
		var all v1.BCSNetIPList
		if err := p.admin.List(t.Context(), &all); err != nil {
			return err
		}
		for _, o := range all.Items {
			if o.Status.Status == v1.IPActive {
				return fmt.Errorf("after all was given back, %s is held: %+v", o.Name, o.Status)
			}
		}
		return nil
	})
}

// Whatever happens to the leader, no client that tries the next replica hears of it, and a process that lives goes on.
func TestLeaderFailsUnderLoad(t *testing.T) {
	t.Parallel()
	p := startTwo(t)
	p.during(t, "nothing happens", func() {})

	p.during(t, "the leader is killed", func() {
		if err := p.all[0].Kill(); err != nil {
			t.Error(err)
		}
		leads(t, p.caller(1))
	})
	if err := p.all[0].Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	forwards(t, p.caller(0), idOf(t, p.caller(1)))

	life, id := p.all[1].Done(), idOf(t, p.caller(1))
	if err := p.all[1].Pause(); err != nil {
		t.Fatal(err)
	}
	// The other one is asked. What it has forwarded reaches the one that is paused when that runs on, after its DEL: by
	// its container the DEL is known to have overtaken it.
	for i := range 5 {
		body := object{"host": "10.0.0.11", "owner": fmt.Sprint("paused-", i), "containerID": newID()}
		p.caller(0).do(t, "POST", prefix, body).answeredBy(t, idOf(t, p.caller(0))).done(t)
		p.caller(0).do(t, "DELETE", prefix, body).done(t)
	}
	released, waited := p.releaseHostWhileStopped(t, 1, 0), p.addWhileStopped(t, 1, 0)
	leads(t, p.caller(0))
	if err := p.all[1].Resume(); err != nil {
		t.Fatal(err)
	}
	waited()
	released()
	forwards(t, p.caller(1), idOf(t, p.caller(0)))
	select {
	case <-life:
		t.Fatal("the replica that was paused has ended")
	default:
	}
	if now := idOf(t, p.caller(1)); now != id {
		t.Errorf("the replica that was paused was %s and is %s", id, now)
	}
	for _, method := range []string{"POST", "DELETE"} {
		p.caller(1).do(t, method, prefix, object{"host": "10.0.0.11", "owner": "after"}).answeredBy(t, idOf(t, p.caller(0))).
			done(t)
	}

	ending := idOf(t, p.caller(0))
	p.during(t, "the leader is asked to end", func() {
		if err := p.all[0].Stop(); err != nil {
			t.Error(err)
		}
		leads(t, p.caller(1))
	})
	// One that has ended in order is no longer among the replicas.
	controlplane.Eventually(t, func() error {
		var leases coordinationv1.LeaseList
		if err := p.admin.List(t.Context(), &leases, client.InNamespace(controlplane.SystemNamespace)); err != nil {
			return err
		}
		for _, l := range leases.Items {
			if holder := l.Spec.HolderIdentity; holder != nil && strings.HasPrefix(*holder, ending) {
				return fmt.Errorf("Lease %s is still that of %s", l.Name, *holder)
			}
		}
		if i := p.caller(1).info(t); slices.ContainsFunc(i.Replicas,
			func(r httpapi.ReplicaInfo) bool { return r.ID == ending }) {
			return fmt.Errorf("%+v", i)
		}
		return nil
	})
}
