package http_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bcsnet/bcsnet/pkg/controller"
	"github.com/bcsnet/bcsnet/pkg/controller/leadership"
	"github.com/bcsnet/bcsnet/pkg/httpapi"
	"github.com/bcsnet/bcsnet/pkg/replica"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

// group is a set of controllers with a leader of their own.
type group struct {
	t         *testing.T
	Namespace string
	lease     time.Duration
}

var groups atomic.Int32

// newGroup makes a namespace in which the controller has the rights that it has in its own.
func newGroup(t *testing.T) *group {
	t.Helper()
	g := &group{t: t, Namespace: fmt.Sprintf("replicas-%d", groups.Add(1))}
	var role rbacv1.Role
	if err := shared.admin.Get(t.Context(), client.ObjectKey{
		Namespace: controlplane.SystemNamespace, Name: "bcsnet-controller-leader",
	}, &role); err != nil {
		t.Fatal(err)
	}
	meta := metav1.ObjectMeta{Namespace: g.Namespace, Name: role.Name}
	for _, o := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: g.Namespace}},
		&rbacv1.Role{ObjectMeta: meta, Rules: role.Rules},
		&rbacv1.RoleBinding{
			ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
			Subjects: []rbacv1.Subject{{
				Kind: rbacv1.ServiceAccountKind, Namespace: controlplane.SystemNamespace,
				Name: controlplane.ControllerName,
			}},
		},
	} {
		if err := shared.admin.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	return g
}

// options makes a controller one of the group, with a Lease that no machine that stands still for a while loses, unless
// the group has another.
func (g *group) options(o *controller.Options) {
	o.LeaderElectionNamespace = g.Namespace
	o.LeaseDuration, o.RenewDeadline, o.RetryPeriod = cmp.Or(g.lease, time.Minute), cmp.Or(g.lease, time.Minute)*2/3,
		500*time.Millisecond
}

// start runs one more controller, as cfg.
func (g *group) start(cfg *rest.Config) *instance {
	g.t.Helper()
	return startFor(g.t, cfg, g.options)
}

// led starts a leader and a follower that knows it.
func (g *group) led() (leader, follower *instance) {
	g.t.Helper()
	cfg := account(g.t, shared.cluster)
	leader = g.start(cfg)
	leads(g.t, leader.caller())
	follower = g.start(cfg)
	forwards(g.t, follower.caller(), idOf(g.t, leader.caller()))
	return leader, follower
}

// held has somebody else lead: a controller of this machine at that URL, as far as its Lease says.
func (g *group) held(name, url string) replica.Identity {
	g.t.Helper()
	who := replica.New(name, url)
	now := metav1.NowMicro()
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: g.Namespace, Name: leadership.LeaseName,
			Labels: map[string]string{"app.kubernetes.io/name": "bcsnet-controller"},
		},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: new(who.Holder()), LeaseDurationSeconds: new(int32(3600)), AcquireTime: &now,
			RenewTime: &now,
		},
	}
	if err := shared.admin.Create(g.t.Context(), lease); err != nil {
		g.t.Fatal(err)
	}
	return who
}

// introduce makes the replicas of another group known to those of this one, as if they were of it.
func (g *group) introduce(other *group) {
	g.t.Helper()
	var all coordinationv1.LeaseList
	controlplane.Eventually(g.t, func() error {
		err := shared.admin.List(g.t.Context(), &all, client.InNamespace(other.Namespace))
		if err == nil && len(all.Items) < 2 {
			err = errors.New("no replica has a Lease of its own yet")
		}
		return err
	})
	for _, l := range all.Items {
		if l.Name == leadership.LeaseName {
			continue
		}
		l.ObjectMeta = metav1.ObjectMeta{Namespace: g.Namespace, Name: l.Name, Labels: l.Labels,
			Annotations: l.Annotations}
		if err := shared.admin.Create(g.t.Context(), &l); client.IgnoreAlreadyExists(err) != nil {
			g.t.Fatal(err)
		}
	}
}

// takeLease has the replica of an ID hold the Lease from now on, whoever holds it.
func (g *group) takeLease(id, url string) {
	g.t.Helper()
	who := replica.Parse(id)
	who.URL = url
	controlplane.Eventually(g.t, func() error { // the holder renews it
		var lease coordinationv1.Lease
		if err := shared.admin.Get(g.t.Context(), client.ObjectKey{Namespace: g.Namespace, Name: leadership.LeaseName},
			&lease); err != nil {
			return err
		}
		lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds = new(who.Holder()), new(int32(3600))
		return shared.admin.Update(g.t.Context(), &lease)
	})
}

func hostname(t *testing.T) string {
	t.Helper()
	name, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	return name
}

func (c caller) info(t *testing.T) (i httpapi.Info) {
	t.Helper()
	a := c.do(t, "GET", "/info", nil)
	if err := json.Unmarshal(a.Raw, &i); err != nil || a.Header.Get("Bcsnet-Answered-By") != i.Replica.ID {
		t.Fatalf("%s, answered by %s: %v", a.Raw, a.Header.Get("Bcsnet-Answered-By"), err)
	}
	return i
}

func idOf(t *testing.T, c caller) string { t.Helper(); return c.info(t).Replica.ID }

// leads waits until a controller leads.
func leads(t *testing.T, c caller) {
	t.Helper()
	controlplane.Eventually(t, func() error {
		if i := c.info(t); !i.Replica.Leading || i.Leader == nil || i.Leader.ID != i.Replica.ID {
			return fmt.Errorf("not leading: %+v", i)
		}
		return nil
	})
}

// forwards waits until a controller forwards to a leader.
func forwards(t *testing.T, c caller, leader string) {
	t.Helper()
	controlplane.Eventually(t, func() error {
		if i := c.info(t); !i.Forwarding.Active || i.Leader == nil || i.Leader.ID != leader {
			return fmt.Errorf("not forwarding to %s: %+v", leader, i)
		}
		return nil
	})
}

// knownTo waits until controllers know the site's pool.
func (s *site) knownTo(all ...caller) {
	s.t.Helper()
	for _, c := range all {
		controlplane.Eventually(s.t, func() error {
			if a := c.do(s.t, "GET", prefix+"/pool/"+s.Namespace, nil); a.Code != 0 {
				return fmt.Errorf("%s", a.Raw)
			}
			return nil
		})
	}
}

// answeredBy fails the test unless that replica gave the answer.
func (a answer) answeredBy(t *testing.T, id string) answer {
	t.Helper()
	if got := a.Header.Get("Bcsnet-Answered-By"); got != id {
		t.Errorf("%s answered, want %s: %s", got, id, a.Raw)
	}
	return a
}

// metric is the value of a line of /metrics; "" when there is none.
func (c caller) metric(t *testing.T, series string) string {
	t.Helper()
	_, text, err := getText(t.Context(), c.url+"/metrics")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), series+" "); ok {
			return value
		}
	}
	return ""
}

// waitMetric waits until a metric has a value.
func (c caller) waitMetric(t *testing.T, series, want string) {
	t.Helper()
	controlplane.Eventually(t, func() error {
		if got := c.metric(t, series); got != want {
			return errors.New(series + " is " + got)
		}
		return nil
	})
}
