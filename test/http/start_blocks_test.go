package http_test

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/controller"
	"github.com/bcsnet/bcsnet/pkg/ipam/block"
	"github.com/bcsnet/bcsnet/pkg/store"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

// ownedBlocks makes a pool of which so many blocks, of 16 addresses each, are owned.
func ownedBlocks(
	t *testing.T, cp *controlplane.ControlPlane, admin client.Client, name string, n int,
) *v1.BCSNetPool {
	t.Helper()
	p := &v1.BCSNetPool{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1.BCSNetPoolSpec{
		Net: "10.0.0.0", Mask: 8, Gateway: "10.254.0.1", Hosts: []string{"10.99.0.11"}, AvailableIPs: []string{"10.80.0.0/16"},
		BlockSize: 28, AutoAssign: true,
	}}
	if err := admin.Create(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	leases, err := store.New(cp.Config, nil, store.NewClock(nil))
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		b := store.Pool(p)
		b.Plan.CIDR = netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 80, byte(i >> 4), byte(i << 4)}), 28)
		b.Name, b.Parent, b.Block = block.Name(name, b.Plan.CIDR), name, true
		b.Namespaces = map[string]struct{}{fmt.Sprint("tenant-", i): {}}
		if _, err := leases.CreateBlock(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// TestStartBesideBlocks: a controller that starts lists the blocks that are owned, once, and neither reads nor writes
// any of them by itself: what it asks of pools is the same beside one block and beside 200.
func TestStartBesideBlocks(t *testing.T) {
	controlplane.TakesLong(t)
	t.Parallel()
	asked := map[int][]string{}
	for _, n := range []int{1, 200} {
		cp := controlplane.ForTest(t)
		if err := cp.InstallManifests(t.Context()); err != nil {
			t.Fatal(err)
		}
		admin, err := cp.Admin()
		if err != nil {
			t.Fatal(err)
		}
		parent := ownedBlocks(t, cp, admin, "net", n)
		p := newProxy(t, cp)
		var mu sync.Mutex
		var of []string
		p.set(func(_ *apiProxy, _ http.ResponseWriter, r *http.Request) bool {
			if path, ok := strings.CutPrefix(r.URL.Path, "/apis/networkextension.bkbcs.tencent.com/v1/bcsnetpools"); ok {
				what := fmt.Sprintf("%s %s watch=%s", r.Method, path, r.URL.Query().Get("watch"))
				mu.Lock()
				defer mu.Unlock()
				if !slices.Contains(of, what) || strings.Contains(path, "-") { // of a block each counts
					of = append(of, what)
				}
			}
			return false
		})
		startFor(t, p.config(), func(o *controller.Options) { o.AdvertiseAddress = "none" })
		// A pool that comes later is reconciled behind the blocks.
		later := &v1.BCSNetPool{ObjectMeta: metav1.ObjectMeta{Name: "later"}, Spec: v1.BCSNetPoolSpec{
			Net: "10.0.0.0", Mask: 8, Gateway: "10.254.0.1", AvailableIPs: []string{"10.90.0.8"},
		}}
		if err := admin.Create(t.Context(), later); err != nil {
			t.Fatal(err)
		}
		for _, o := range []*v1.BCSNetPool{parent, later} {
			controlplane.Eventually(t, func() error {
				if err := admin.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil || o.Status.Status == v1.PoolNormal {
					return err
				}
				return fmt.Errorf("pool %s: %+v", o.Name, o.Status)
			})
		}
		mu.Lock()
		asked[n] = slices.Sorted(slices.Values(of))
		mu.Unlock()
	}
	if diff := cmp.Diff(asked[1], asked[200]); diff != "" {
		t.Errorf("asked beside 200 blocks, and not beside one (-one +200):\n%s", diff)
	}
}
