package node

import (
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// object returns a Node with InternalIPs.
func object(name string, addrs ...string) *corev1.Node {
	o := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, a := range addrs {
		o.Status.Addresses = append(o.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: a})
	}
	return o
}

// of returns the names of the nodes on which the container of a lease of a host may be, by when the lease was written.
func of(n *Nodes, host string, written time.Time) (all []string) {
	l := lease.Lease{Holder: lease.Holder{Host: netip.MustParseAddr(host)}, Updated: written}
	for _, c := range n.Of(l) {
		all = append(all, c.Name)
	}
	return all
}

// An address moves to another node while containers run on the first one: what is known of both counts for their
// leases, and for leases that are newer than the move what is known of the node that has it now.
func TestAddressMoves(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	n := New(index.New().Pools, func([]netip.Addr, []string) {}, func() time.Time { return now })
	check := func(when string, want []string, written time.Time) {
		t.Helper()
		if diff := cmp.Diff(want, of(n, "10.9.0.11", written)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
	}
	before, after := now.Add(-time.Minute), now.Add(time.Minute)
	n.Set(object("a", "10.0.0.11", "10.9.0.11"))
	n.Set(object("b", "10.0.0.12"))
	check("at first", []string{"a"}, before)
	n.Set(object("a", "10.0.0.11"))
	check("nobody has it", []string{"a"}, before)
	n.Set(object("b", "10.0.0.12", "10.9.0.11"))
	check("moved", []string{"b", "a"}, before)
	check("moved, newer lease", []string{"b"}, after)
	n.Remove(object("a"))
	check("the first node is gone", []string{"b"}, before)
	n.Set(object("a", "10.0.0.11", "10.9.0.11"))
	n.Set(object("b", "10.0.0.12"))
	n.Set(object("b", "10.0.0.12", "10.9.0.11"))
	check("both have it", []string{"a", "b"}, before)
	n.Remove(object("a"))
	n.Remove(object("b"))
	check("no node is left", nil, before)
	if len(n.left) > 0 {
		t.Errorf("still known: %v", n.left)
	}
}

// The next process knows of a move what the earlier one has written down, except of nodes that are gone and of those
// that have the address again. What it has seen itself counts more.
func TestRecall(t *testing.T) {
	t.Parallel()
	moved := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	before, after := moved.Add(-time.Minute), moved.Add(time.Minute)
	now := moved
	fresh := func() *Nodes {
		return New(index.New().Pools, func([]netip.Addr, []string) {}, func() time.Time { return now })
	}
	always := func(Former) bool { return true }

	n := fresh()
	n.Set(object("a", "10.0.0.31"))
	n.Set(object("c", "10.0.0.33", "10.0.0.34"))
	n.Set(object("d", "10.0.0.35"))
	n.Set(object("a", "10.0.0.32"))
	n.Set(object("b", "10.0.0.31"))
	n.Set(object("c", "10.0.0.33"))
	n.Set(object("d", "10.0.0.36"))
	written := n.Formers(always)

	next := fresh()
	for _, o := range []*corev1.Node{object("a", "10.0.0.32"), object("b", "10.0.0.31"), object("c", "10.0.0.34")} {
		next.Set(o)
	}
	next.Recall(written)
	for when, tc := range map[string]struct {
		host    string
		written time.Time
		want    []string
	}{
		"moved":                       {"10.0.0.31", before, []string{"b", "a"}},
		"moved, newer lease":          {"10.0.0.31", after, []string{"b"}},
		"the node has it again":       {"10.0.0.34", before, []string{"c"}},
		"the node is gone":            {"10.0.0.35", before, nil},
		"nobody ever had the address": {"10.0.0.37", before, nil},
	} {
		if diff := cmp.Diff(tc.want, of(next, tc.host, tc.written)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
	}

	now = after
	next.Set(object("a", "10.0.0.31"))
	next.Set(object("a", "10.0.0.32"))
	next.Recall(written)
	want := []Former{{netip.MustParseAddr("10.0.0.31"), "a", after}}
	addresses := cmpopts.EquateComparable(netip.Addr{})
	if diff := cmp.Diff(want, next.Formers(always), addresses); diff != "" {
		t.Errorf("moved again, then recalled (-want +got):\n%s", diff)
	}
	if all := next.Formers(func(Former) bool { return false }); len(all) > 0 || len(next.left) > 0 {
		t.Errorf("not needed any more: %v, %v", all, next.left)
	}
}
