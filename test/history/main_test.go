// Package history_test checks the history of addresses and pools on a real API server: what is in it, and what becomes
// of it when replicas end, when it is old, and when there is too much of it.
package history_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/controller"
	"github.com/bcsnet/bcsnet/pkg/history"
	"github.com/bcsnet/bcsnet/pkg/httpapi/wire"
	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/inprocess"
	"github.com/bcsnet/bcsnet/test/plugin"
)

const host = "10.0.0.11"

// patience is for what must come, however slow the machine is.
const patience = time.Minute

var cluster *controlplane.ControlPlane

func TestMain(m *testing.M) { os.Exit(controlplane.Main(m, &cluster)) }

// installed installs the manifests, with the policy by which pools name who changed them, and waits for its effect.
var installed = sync.OnceValue(func() error {
	ctx := context.Background()
	admin, err := cluster.Prepare(ctx)
	if err != nil {
		return err
	}
	root, err := controlplane.ModuleRoot()
	if err != nil {
		return err
	}
	if out, err := cluster.Kubectl(ctx, "apply", "-k", filepath.Join(root, "config", "authors")).CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return controlplane.WaitFor(ctx, time.Minute, func() error {
		p := poolOf("named")
		err := admin.Create(ctx, p, client.DryRunAll)
		if err == nil && p.Annotations[v1.ChangedByAnnotation] == "" {
			err = errors.New("the policy bcsnet-authors has no effect yet")
		}
		return err
	})
})

// fixture is what a test has. The tests run one after the other: all write one history.
type fixture struct {
	*testing.T
	admin client.Client
	cfg   *rest.Config
}

// at returns the fixture of a test, with an empty history.
func at(t *testing.T) *fixture {
	t.Helper()
	if err := installed(); err != nil {
		t.Fatal(err)
	}
	return on(t, cluster)
}

func on(t *testing.T, cp *controlplane.ControlPlane) *fixture {
	t.Helper()
	f := &fixture{T: t, admin: cp.AdminFor(t)}
	var err error
	if f.cfg, err = cp.ServiceAccountConfig(t.Context(), controlplane.SystemNamespace, controlplane.ControllerName); err != nil {
		t.Fatal(err)
	}
	if err := f.admin.DeleteAllOf(t.Context(), &v1.BCSNetHistory{}); err != nil {
		t.Fatal(err)
	}
	return f
}

// run runs a controller that writes its history often.
func (f *fixture) run(change func(*controller.Options)) *inprocess.Controller {
	f.Helper()
	return inprocess.ForTest(f.T, f.cfg, func(o *controller.Options) {
		o.HistoryEvery = 100 * time.Millisecond
		if change != nil {
			change(o)
		}
	})
}

func poolOf(name string) *v1.BCSNetPool {
	return &v1.BCSNetPool{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1.BCSNetPoolSpec{
		Net: "10.7.0.0", Mask: 16, Gateway: "10.7.0.1", Hosts: []string{host},
	}}
}

// pool makes a pool with addresses, which goes with the test.
func (f *fixture) pool(name string, addresses ...string) *v1.BCSNetPool {
	f.Helper()
	p := poolOf(name)
	p.Spec.AvailableIPs = addresses
	if err := f.admin.Create(f.Context(), p); err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() {
		ctx := context.Background()
		nobodys := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
		_ = f.admin.Delete(ctx, p)
		_ = f.admin.Patch(ctx, p, nobodys)
		_ = f.admin.DeleteAllOf(ctx, &v1.BCSNetIP{})
	})
	return p
}

// ask has the controller give an address to an owner, or take it back (DELETE).
func (f *fixture) ask(method, url, owner string) {
	f.Helper()
	h := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	controlplane.Eventually(f.T, func() error {
		a, err := plugin.Ask(f.Context(), h, method, url, wire.AllocateRequest{Host: host, Owner: owner})
		if err == nil && a.Code != 0 {
			err = errors.New(a.Message)
		}
		return err
	})
}

// records reads the history, in order.
func (f *fixture) records() (all []history.Record, err error) {
	var parts v1.BCSNetHistoryList
	if err := f.admin.List(f.Context(), &parts); err != nil {
		return nil, err
	}
	for _, p := range parts.Items {
		n := len(all)
		err := history.Read(p.Data, func(r history.Record) error { all = append(all, r); return nil })
		if err != nil {
			return nil, err
		}
		if len(all)-n != int(p.Records) {
			return nil, fmt.Errorf("part %s has %d records and says %d", p.Name, len(all)-n, p.Records)
		}
	}
	slices.SortStableFunc(all, history.Record.Compare)
	// Two leaders may both write what is at the border of their terms: it is shown once.
	return slices.CompactFunc(all, func(a, b history.Record) bool { return a.Compare(b) == 0 }), nil
}

// want waits until the history of a pool and its addresses is as wanted: a line each, in any order.
func (f *fixture) want(pool string, lines ...string) {
	f.Helper()
	slices.Sort(lines)
	err := controlplane.WaitFor(f.Context(), patience, func() error {
		all, err := f.records()
		if err != nil {
			return err
		}
		var got []string
		for _, r := range all {
			if r.Pool == pool || r.What == history.WhatGap {
				got = append(got, text(r))
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, lines) {
			return fmt.Errorf("the history has\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(lines, "\n  "))
		}
		return nil
	})
	if err != nil {
		f.Fatal(err)
	}
}

// text returns a record without its times.
func text(r history.Record) string {
	s := strings.Join(strings.Fields(fmt.Sprint(r.What, " ", r.Holder(), " ", r.By, " ", r.Program)), " ")
	if r.What == history.WhatCreated {
		return s
	}
	for _, c := range r.Changes {
		s += fmt.Sprintf(" %s:%s>%s", c.Field, c.Old, c.New)
	}
	return s
}
