package recovery

import (
	"net/netip"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

// Somebody empties the status of an address by hand while a pod or an owner has it: the lease is made again, and
// the address is nobody else's meanwhile.
func TestEmptiedByHand(t *testing.T) {
	r := newReplica(t)
	at := func(i byte) netip.Addr { return netip.AddrFrom4([4]byte{10, 9, 3, i}) }
	for n, tc := range map[byte]struct {
		name, patch string
		deleted     bool
		finalizer   string // another's
	}{
		10: {name: "status", patch: `{"status":null}`},
		11: {name: "state", patch: `{"status":{"status":"Available"}}`},
		12: {name: "status-and-finalizer", patch: `{"metadata":{"finalizers":null},"status":null}`},
		13: {name: "status-deleted", patch: `{"status":null}`, deleted: true},
		14: {name: "state-deleted", patch: `{"status":{"status":"Available"}}`, deleted: true},
		15: {name: "both-deleted", patch: `{"metadata":{"finalizers":null},"status":{"status":"Available"}}`, deleted: true},
		16: {
			name: "both-others", patch: `{"metadata":{"finalizers":["example.com/wait"]},"status":{"status":"Available"}}`,
			deleted: true, finalizer: "example.com/wait",
		},
		17: {name: "state-and-finalizer", patch: `{"metadata":{"finalizers":null},"status":{"status":"Available"}}`},
	} {
		for _, owned := range []bool{false, true} {
			name := tc.name
			if owned {
				name, n = name+"-owner", n+10
			}
			t.Run(name, func(t *testing.T) {
				l := lease.Lease{
					Addr: at(n), State: lease.Active, Params: lease.Params{Pool: "emptied", Bits: 24, Gateway: at(254)},
					Holder:  lease.Holder{Host: at(1), ContainerID: "c-" + name, IfName: "eth0"},
					Updated: time.Now().Add(-time.Hour), HeldFinalizer: true,
				}
				if owned {
					l.Owner = "vm-" + name
				} else {
					pod := r.newPod(t, "emptied-"+name, at(n))
					l.Namespace, l.PodName, l.PodUID = pod.Namespace, pod.Name, string(pod.UID)
				}
				l = r.write(t, l)
				o := &v1.BCSNetIP{}
				o.Name = ipaddr.ObjectName(l.Addr)
				if tc.finalizer != "" {
					patch := `{"metadata":{"finalizers":["` + v1.HeldFinalizer + `","` + tc.finalizer + `"]}}`
					if err := r.admin.Patch(t.Context(), o, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
						t.Fatal(err)
					}
				}
				if tc.deleted {
					if err := r.admin.Delete(t.Context(), o.DeepCopy()); err != nil {
						t.Fatal(err)
					}
				}
				if err := r.admin.Patch(t.Context(), o, client.RawPatch(types.MergePatchType, []byte(tc.patch))); err != nil {
					t.Fatal(err)
				}
				controlplane.Until(t, "the lease is made again", func() bool { return r.lease(t, l.Addr).State == lease.Active })
				if tc.finalizer != "" { // and when that has gone
					if err := r.admin.Patch(t.Context(), o, client.RawPatch(types.MergePatchType,
						[]byte(`{"metadata":{"finalizers":null}}`))); err != nil {
						t.Fatal(err)
					}
					controlplane.Until(t, "the lease is made again",
						func() bool { l := r.lease(t, l.Addr); return l.State == lease.Active && !l.Deleting })
				}
				now := r.lease(t, l.Addr)
				if now.State != lease.Active || now.ContainerID != l.ContainerID || now.Owner != l.Owner ||
					now.PodUID != l.PodUID || !now.HeldFinalizer {
					t.Errorf("stored: %+v", now)
				}
				controlplane.Until(t, "the index has it", func() bool {
					l, ok := r.index.Leases.Get(l.Addr)
					_, lost := r.index.Leases.Missing(l.Addr)
					return ok && l.State == lease.Active && !lost
				})
			})
		}
	}
}
