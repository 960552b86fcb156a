package history_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/controller"
	"github.com/bcsnet/bcsnet/pkg/history"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

// asUser is somebody with all rights and a name.
func (f *fixture) asUser(cp *controlplane.ControlPlane, name string) client.Client {
	f.Helper()
	cfg := rest.CopyConfig(cp.Config)
	cfg.Impersonate = rest.ImpersonationConfig{UserName: name, Groups: []string{"system:masters"}}
	h, err := rest.HTTPClientFor(cfg)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(h.CloseIdleConnections)
	scheme, err := controlplane.Scheme()
	if err != nil {
		f.Fatal(err)
	}
	c, err := client.New(cfg, client.Options{HTTPClient: h, Scheme: scheme})
	if err != nil {
		f.Fatal(err)
	}
	return c
}

// edit changes the gateway of a pool.
func (f *fixture) edit(c client.Client, p *v1.BCSNetPool, gateway string) {
	f.Helper()
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if err := c.Get(f.Context(), client.ObjectKeyFromObject(p), p); err != nil {
			return err
		}
		p.Spec.Gateway = gateway
		return c.Update(f.Context(), p, client.FieldOwner("editor"))
	})
	if err != nil {
		f.Fatal(err)
	}
}

// The history has who held an address, and who changed its pool how.
func TestWhoAndWhen(t *testing.T) {
	f := at(t)
	c := f.run(nil)
	p := f.pool("who", "10.7.0.20")
	f.ask("POST", c.URL, "vm-1")
	f.ask("DELETE", c.URL, "vm-1")
	f.edit(f.asUser(cluster, "ann"), p, "10.7.0.2")
	f.want("who", "created "+f.self(), "gave up vm-1", "changed ann gateway:10.7.0.1>10.7.0.2")
	all, err := f.records()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		if r.What == history.WhatGaveUp && (r.Host.String() != host || r.IP.String() != "10.7.0.20" || r.Since.IsZero() || r.Time.Before(r.Since)) {
			t.Errorf("the holding is recorded as %+v", r)
		}
	}
}

// self returns the name of the administrator.
func (f *fixture) self() string {
	f.Helper()
	p := poolOf("self")
	if err := f.admin.Create(f.Context(), p, client.DryRunAll); err != nil {
		f.Fatal(err)
	}
	return p.Annotations[v1.ChangedByAnnotation]
}

// Without the policy anybody can write the annotation: the history has what the client called itself, as a program.
func TestWithoutThePolicy(t *testing.T) {
	cp := controlplane.ForTest(t)
	if err := cp.InstallManifests(t.Context()); err != nil {
		t.Fatal(err)
	}
	f := on(t, cp)
	f.run(nil)
	p := poolOf("unnamed")
	p.Annotations = map[string]string{v1.ChangedByAnnotation: "someone"}
	if err := f.admin.Create(t.Context(), p, client.FieldOwner("maker")); err != nil {
		t.Fatal(err)
	}
	f.edit(f.admin, p, "10.7.0.2")
	controlplane.Eventually(t, func() error {
		all, err := f.records()
		if err != nil {
			return err
		}
		edited := 0
		for _, r := range all {
			switch {
			case r.By != "":
				t.Fatalf("the history names %q, as anybody can write", r.By)
			case r.Pool == p.Name && r.Program == "editor":
				edited++
			}
		}
		if edited == 0 {
			return fmt.Errorf("no program editor among %d records", len(all))
		}
		return nil
	})
}

// What happens while no controller runs is in the history as far as objects remember it: what happened to addresses,
// and who changed pools. There is a gap where an address may have had more holders than it remembers, and nowhere else.
func TestAcrossRestarts(t *testing.T) {
	f := at(t)
	c := f.run(nil)
	p := f.pool("restarts", "10.7.0.30")
	f.ask("POST", c.URL, "vm-1")
	f.want("restarts", "created "+f.self())
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	f.pass("10.7.0.30", "vm-2")
	f.edit(f.asUser(cluster, "ann"), p, "10.7.0.2")
	once := []string{"created " + f.self(), "release vm-1 operator", "changed ann"}
	c = f.run(nil)
	f.want("restarts", once...)
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	c = f.run(nil) // nothing has happened
	f.ask("DELETE", c.URL, "vm-2")
	once = append(once, "gave up vm-2")
	f.want("restarts", once...)
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	f.pass("10.7.0.30", "vm-3")
	for i := 4; i < 8; i++ {
		f.pass("10.7.0.30", fmt.Sprint("vm-", i))
	}
	f.run(nil)
	f.want("restarts", append(once, "release vm-4 operator", "release vm-5 operator", "release vm-6 operator", "gap")...)
}

// pass gives an address to another owner, as somebody does by hand, a second later than the last change.
func (f *fixture) pass(name, owner string) {
	f.Helper()
	o := &v1.BCSNetIP{}
	if err := f.admin.Get(f.Context(), client.ObjectKey{Name: name}, o); err != nil {
		f.Fatal(err)
	}
	s := &o.Status
	since, err := time.Parse(time.RFC3339Nano, s.UpdateTime)
	if err != nil {
		f.Fatal(err)
	}
	now := since.Truncate(time.Second).Add(time.Second)
	if clock := time.Now(); clock.After(now) {
		now = clock
	}
	if s.Owner != "" {
		s.History = append([]v1.HistoryEntry{{Holder: s.Owner, Host: s.Host, Since: s.UpdateTime, Until: now.UTC().Format(time.RFC3339),
			Verb: "release", By: "operator"}}, s.History...)
		s.History = s.History[:min(len(s.History), 3)]
	}
	s.Status, s.Owner, s.Host, s.UpdateTime = v1.IPActive, owner, host, now.UTC().Format(time.RFC3339Nano)
	o.Finalizers = []string{v1.HeldFinalizer}
	if err := f.asUser(cluster, "operator").Update(f.Context(), o); err != nil {
		f.Fatal(err)
	}
}

// Parts go when all their records are older than the retention, and when there are too many.
func TestOldPartsGo(t *testing.T) {
	f := at(t)
	for i, age := range []time.Duration{72 * time.Hour, 48 * time.Hour, 30 * time.Minute, 20 * time.Minute, 10 * time.Minute} {
		begins := time.Now().Add(-age)
		data, _ := packed(t, history.Record{Time: begins.UTC().Truncate(time.Second), What: history.WhatGaveUp, Owner: fmt.Sprint("vm-", i)})
		o := &v1.BCSNetHistory{ObjectMeta: metav1.ObjectMeta{Name: history.Name(begins, "other")}, Since: begins.UTC().Format(time.RFC3339),
			Until: begins.UTC().Format(time.RFC3339), Records: 1, Version: "1", Data: data}
		if err := f.admin.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	names := func() (all string, err error) {
		records, err := f.records()
		for _, r := range records {
			if !r.IP.IsValid() && r.Owner != "" {
				all += " " + r.Owner
			}
		}
		return strings.TrimSpace(all), err
	}
	want := func(want string) {
		t.Helper()
		controlplane.Eventually(t, func() error {
			got, err := names()
			if err == nil && got != want {
				err = fmt.Errorf("left are %q, want %q", got, want)
			}
			return err
		})
	}
	c := f.run(func(o *controller.Options) { o.HistoryRetention = time.Hour })
	want("vm-1 vm-2 vm-3 vm-4") // the second lasted until the third began
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	f.run(func(o *controller.Options) { o.HistoryRetention, o.HistoryParts = time.Hour, 2 })
	want("vm-3 vm-4")
}

func packed(t *testing.T, records ...history.Record) (data []byte, n int32) {
	t.Helper()
	part, _, err := (&history.Part{}).Add(records)
	if err != nil {
		t.Fatal(err)
	}
	data, count := part.Data()
	return data, int32(count)
}

// Two replicas run, and the leader ends at once: what the other one saw meanwhile is not lost, and nothing is there
// twice.
func TestNextLeaderGoesOn(t *testing.T) {
	f := at(t)
	first := f.run(nil)
	second := f.run(nil)
	f.pool("next", "10.7.0.40-10.7.0.44")
	for i := range 5 {
		f.ask("POST", first.URL, fmt.Sprint("next-", i))
	}
	for i := range 5 {
		f.ask("DELETE", second.URL, fmt.Sprint("next-", i))
		if i == 2 {
			if err := first.Stop(); err != nil {
				t.Fatal(err)
			}
		}
	}
	f.want("next", "created "+f.self(), "gave up next-0", "gave up next-1", "gave up next-2", "gave up next-3",
		"gave up next-4")
	if strings.Contains(second.Log.String(), "cannot be written") {
		t.Error("the history could not be written")
	}
}
