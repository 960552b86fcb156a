package index

import (
	"fmt"
	"testing"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// A namespace that makes pod after pod, and has the address of each kept, leaves as many addresses free as it keeps.
// Whoever keeps nothing is served, what is kept already goes to its pod, and other namespaces keep what they like.
func TestKeptOnePodAtATime(t *testing.T) {
	p := pool(t, "a", "10.0.0.0/24", []string{"10.0.0.10-10.0.0.60"}) // 51 addresses
	x := indexOf(p)
	version := uint64(0)
	keeping := func(namespace, app string) ipam.PickRequest {
		return want(inNamespace(namespace), func(w *ipam.PickRequest) {
			w.Claim, w.PodPrimaryKey, w.IfName, w.Keeps, w.Key = namespace+"/"+app, app, lease.DefaultIfName, true, app
		})
	}
	type ended struct {
		request ipam.PickRequest
		addr    string
	}
	var all []ended
	// end has the address of a pod kept after the pod.
	end := func(w ipam.PickRequest, a string) {
		version++
		l := reserved(a, "a", version)
		l.Namespace, l.Claim, l.PodPrimaryKey, l.Fixed, l.IfName = w.Namespace, w.Claim, w.PodPrimaryKey, true, w.IfName
		x.Feed.Watched(l)
	}
	kept := func(namespace string) (n int) {
		for i := range 51 {
			w := keeping(namespace, fmt.Sprintf("app-%d", i))
			picks, refusal := x.Pick(w, now)
			if refusal != nil {
				if refusal.Reason != ipam.ReasonQuotaExceeded {
					t.Fatal(refusal)
				}
				return n
			}
			all = append(all, ended{w, picked(picks)[0][len("a "):]})
			end(w, all[len(all)-1].addr)
			n++
		}
		return n
	}
	if n := kept("tenant"); n != 26 {
		t.Errorf("of 51 addresses a namespace has %d kept", n)
	}
	const text = "QuotaExceeded: no available IP for pod shop/a: namespace tenant keeps 26 addresses of pool a that no pod " +
		"uses, and 25 are free: it cannot keep more; hint: release what it does not need: " +
		"bcsnetctl claim list -n tenant; or give it its own quota: bcsnetctl pool set a --quota tenant=N"
	if _, refusal := x.Pick(keeping("tenant", "more"), now); refused(refusal) != text {
		t.Errorf("refused:\n got %s\nwant %s", refused(refusal), text)
	}
	if room := x.RoomFor(keeping("tenant", "more"), now); room != 0 {
		t.Errorf("a node has room for %d more pods of which it is to be kept", room)
	}
	if room := x.RoomFor(keeping("bank", "first"), now); room != 25 {
		t.Errorf("a node has room for %d pods of another namespace, want 25", room)
	}
	x = indexOf(p) // nothing is on its way
	for _, w := range all {
		end(w.request, w.addr)
	}
	again := keeping("tenant", "app-0")
	if _, refusal := x.Pick(again, now); refusal != nil {
		t.Errorf("the pod that an address is kept for: %v", refusal)
	}
	plain := want(inNamespace("tenant"), func(w *ipam.PickRequest) { w.Key = "plain" })
	if _, refusal := x.Pick(plain, now); refusal != nil {
		t.Errorf("a pod of the namespace that keeps nothing: %v", refusal)
	}
	if n := kept("other"); n == 0 {
		t.Error("another namespace has nothing kept")
	}
	p.Quotas = map[string]int{"tenant": 40}
	x.Pools.SetPool(p)
	if _, refusal := x.Pick(keeping("tenant", "more"), now); refusal != nil {
		t.Errorf("with a quota: %v", refusal)
	}
	p.Quotas, p.Namespaces = nil, map[string]struct{}{"tenant": {}}
	x.Pools.SetPool(p)
	if _, refusal := x.Pick(keeping("tenant", "more-yet"), now); refusal != nil {
		t.Errorf("a pool of its own: %v", refusal)
	}
}
