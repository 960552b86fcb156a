package cni_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
)

// active counts the addresses that pods have on the node, by the UIDs of the pods.
func (c *crio) active() map[string]int {
	c.Helper()
	list := &v1.BCSNetIPList{}
	if err := c.Admin.List(c.Context(), list); err != nil {
		c.Fatal(err)
	}
	all := map[string]int{}
	for _, o := range list.Items {
		if o.Status.Status == v1.IPActive && o.Status.Host == c.Host {
			all[o.Status.PodUID]++
		}
	}
	return all
}

// wantActive fails unless exactly these pods have so many addresses each.
func (c *crio) wantActive(when string, each int, pods ...*container) {
	c.Helper()
	want := map[string]int{}
	for _, p := range pods {
		want[p.uid] = each
	}
	if got := c.active(); !maps.Equal(got, want) {
		c.Fatalf("%s: pods have %v, want %v\n%s", when, got, want, c.read("run/calls.log"))
	}
}

// old has all leases of the node be bound ten minutes ago, and waits until the controller knows.
func (c *crio) old() {
	c.Helper()
	list := &v1.BCSNetIPList{}
	if err := c.Admin.List(c.Context(), list); err != nil {
		c.Fatal(err)
	}
	var names []string
	for _, o := range list.Items {
		if o.Status.Status == v1.IPActive && o.Status.Host == c.Host {
			names = append(names, o.Name)
		}
	}
	c.Aged(names...)
}

// TestRuntimes has CRI-O start again above each arrangement of our conflist and Multus: what it sends to networks that
// it did not attach frees no pod. Afterwards a pod goes whose DEL is lost, and the rest ends by CRI-O.
func TestRuntimes(t *testing.T) {
	for name, c := range map[string]struct {
		configure func(*crio)
		// second: pods have a second interface, by Multus.
		second, long bool
	}{
		"ours alone":             {configure: func(c *crio) { c.configured("10-bcsnet.conflist", c.ours()) }, long: true},
		"ours above Multus":      {configure: func(c *crio) { c.configured("10-bcsnet.conflist", c.ours()); c.thin("20-multus.conf", c.ours()) }, long: true},
		"ours below thin Multus": {configure: func(c *crio) { c.configured("10-bcsnet.conflist", c.ours()); c.thin("00-multus.conf", c.ours()) }, second: true},
		"ours below thick Multus": {configure: func(c *crio) {
			c.configured("10-bcsnet.conflist", c.ours())
			c.thick()
		}, second: true},
	} {
		t.Run(name, func(t *testing.T) {
			if c.long && testing.Short() {
				t.Skip("skipped: not in the short form")
			}
			t.Parallel()
			n := newCRIO(t)
			n.pool("-pods", func(s *v1.BCSNetPoolSpec) { s.Network = fmt.Sprintf("pods-%d", n.ten) }, 20, 21, 22, 23)
			each := 1
			var network string
			c.configure(n)
			if c.second {
				network, each = n.network(), 2
				n.pool("-second", func(s *v1.BCSNetPoolSpec) { s.Network = network }, 30, 31, 32, 33)
			}
			var pods []*container
			for i := range 3 {
				p := n.container(fmt.Sprint("web", i))
				if c.second {
					n.annotate(p, network)
				}
				n.does("add", p)
				pods = append(pods, p)
			}
			n.wantActive("added", each, pods...)
			n.does("status")
			before := n.held(pods[0].id)
			for range 2 {
				n.old()
				n.does("start", pods...)
				n.wantActive("CRI-O has started again", each, pods...)
			}
			if got := n.held(pods[0].id); !slices.Equal(got, before) {
				t.Errorf("the pod has %v, and had %v", got, before)
			}
			lost := pods[0]
			if err := n.Admin.Delete(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: lost.pod}},
				client.GracePeriodSeconds(0)); err != nil {
				t.Fatal(err)
			}
			n.does("start", pods[1:]...)
			for _, p := range pods[1:] {
				if got := n.active()[p.uid]; got != each {
					t.Errorf("a pod that is there has %d addresses, want %d", got, each)
				}
			}
			n.does("del", pods...) // a DEL comes again, and late
			n.wantActive("all have ended", each)
			if files := n.files("run/attach"); len(files) > 0 {
				t.Errorf("files are left: %v", files)
			}
		})
	}
}
