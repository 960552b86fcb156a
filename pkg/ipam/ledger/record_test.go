package ledger

import (
	"math"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

func anAddrOf(t *rapid.T) netip.Addr {
	return netip.MustParseAddr(rapid.SampledFrom([]string{"10.0.0.9", "10.255.0.1", "2001:db8::5"}).Draw(t, "address"))
}

// aWildLease draws a lease with anything in its fields that an object can have.
func aWildLease(t *rapid.T) lease.Lease {
	text := func(label string, of ...string) string {
		return rapid.OneOf(rapid.SampledFrom(append(of, "")), rapid.StringN(0, 40, 256)).Draw(t, label)
	}
	when := func(label string) time.Time {
		if rapid.Bool().Draw(t, label+" known") {
			return time.Time{}
		}
		return time.Unix(rapid.Int64Range(1, 1<<33).Draw(t, label), rapid.Int64Range(0, 999_999_999).Draw(t, label+" ns")).
			UTC()
	}
	l := lease.Lease{
		Addr: anAddrOf(t), Version: rapid.Uint64().Draw(t, "version"),
		State:  lease.State(rapid.IntRange(0, 2).Draw(t, "state")),
		Params: lease.Params{Pool: text("pool"), Bits: rapid.IntRange(0, 128).Draw(t, "bits")},
		Holder: lease.Holder{
			ContainerID: text("container", realisticContainer, "0123", "ABCDEF"), IfName: text("interface", "eth0"),
			Namespace: text("namespace"), PodName: text("pod"),
			PodUID: text("uid", realisticUID, strings.Replace(realisticUID, "-", "0", 1), "{"+realisticUID[1:35]+"}"),
			Owner:  text("owner"), SetSize: rapid.IntRange(0, 16).Draw(t, "set size"), StartedAt: when("started"),
			Termination:  time.Duration(rapid.Int32Range(0, math.MaxInt32).Draw(t, "termination")) * time.Second,
			BoundVersion: rapid.Uint64().Draw(t, "bound"), Given: lease.Given(text("given", "{}", `{"vlan":7}`)),
		},
		Retention: lease.Retention{
			Fixed: rapid.Bool().Draw(t, "fixed"), PodPrimaryKey: text("key"), ExpiredTime: text("expired"),
		},
		Updated: when("updated"), Deleting: rapid.Bool().Draw(t, "deleting"),
		HeldFinalizer: rapid.Bool().Draw(t, "finalizer"), Foreign: rapid.Bool().Draw(t, "foreign"),
	}
	if rapid.Bool().Draw(t, "gateway known") {
		l.Gateway = anAddrOf(t)
	}
	if rapid.Bool().Draw(t, "host known") {
		l.Host = anAddrOf(t)
	}
	for range rapid.IntRange(0, lease.MaxHistory).Draw(t, "history") {
		l.History = l.History.Add(lease.Past{
			Holder: text("earlier holder"), Since: when("since"), Until: when("until"),
			Change: lease.Change{Verb: text("verb"), By: text("by"), Reason: text("reason")},
		})
	}
	if n := rapid.IntRange(0, 4).Draw(t, "superseded"); n > 0 {
		l.Superseded = rapid.SliceOfN(rapid.String(), n, n).Draw(t, "superseded IDs")
	}
	if rapid.Bool().Draw(t, "migrates") {
		l.Other = &lease.Holder{ContainerID: text("second container"), PodUID: text("second uid"), PodName: text("second pod")}
	}
	return l
}

const (
	realisticContainer = "4f2a9c0d1e8b7a6f5d4c3b2a190817263544536271809fae0bdc1aeb2f3c4d5e"
	realisticUID       = "0a1b2c3d-4e5f-4678-9abc-def012345678"
)

// What the index keeps of a lease is all of it.
func TestRecordKeepsTheLease(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := aWildLease(t)
		r := Pack(l)
		if diff := cmp.Diff(l, r.Lease(), cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{})); diff != "" {
			t.Fatalf("lease (-given +kept):\n%s", diff)
		}
		if r.Container() != PackHex(l.ContainerID) || r.UID() != PackUUID(l.PodUID) || r.Owner() != l.Owner {
			t.Fatalf("kept %v, %v, %q", r.Container(), r.UID(), r.Owner())
		}
	})
}
