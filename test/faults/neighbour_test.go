package faults_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/httpapi/wire"
)

const (
	// cniNetwork is the conflist by which all containers are attached.
	cniNetwork = "pods"
	// tenantPool gives namespaces blocks by itself, to those who name its network, which is called like it.
	tenantPool = "tenants"
)

// carve makes a group of one address of a pool, for a namespace that nobody is in, and drops it again. Where somebody
// has the address it is refused; a request that chose it before is served by the pool.
func (r *round) carve(rng *rand.Rand) {
	n := rng.IntN(5 * r.site.slots)
	name := fmt.Sprintf("group-%d", n)
	_, err := r.site.bcsnetctl(r.ctx, soon, "pool", "create", name, "--parent", demandPool, "--namespace", "nobody",
		"--range", span("10.2.0.10", n, n+1))
	if err != nil {
		return
	}
	r.Count("group carved")
	r.while(rng, time.Second/2, 4*time.Second)
	_, _ = r.site.bcsnetctl(r.ctx, soon, "pool", "delete", name, "--yes")
}

// dropGroups deletes the groups that are left, as those whose deletion failed, or that a copy of the store had.
func (r *round) dropGroups() {
	until(r.ctx, func(ctx context.Context) error {
		var all v1.BCSNetPoolList
		if err := r.site.admin.List(ctx, &all); err != nil {
			return err
		}
		for i := range all.Items {
			if p := &all.Items[i]; p.Spec.Parent == demandPool && p.DeletionTimestamp == nil {
				if err := r.site.admin.Delete(ctx, p); client.IgnoreNotFound(err) != nil {
					return err
				}
			}
		}
		return nil
	})
}

// collectNetwork calls the collection of a host's network as its runtime does, with the containers that the API server
// knows there: what is bound meanwhile must stay all the same.
func (r *round) collectNetwork(rng *rand.Rand) {
	h, began := rng.IntN(hosts), time.Now()
	if !r.site.inTouch(h) || clockError(h) != 0 {
		return
	}
	limited, cancel := context.WithTimeout(r.ctx, soon)
	defer cancel()
	all, err := r.site.active(limited)
	if err != nil {
		return
	}
	request := wire.GCRequest{
		Host: host(h), CNINetwork: cniNetwork, StartedAt: began.UTC().Format(time.RFC3339Nano), Attachments: []wire.Attachment{},
	}
	its := r.site.addresses(h)
	for _, l := range all {
		if slices.Contains(its, l.Host.String()) && l.ContainerID != "" { // one that was made from its pod names no container yet
			request.Attachments = append(request.Attachments, wire.Attachment{ContainerID: l.ContainerID, IfName: l.IfName})
		}
	}
	a, err := r.callers.Once(limited, rng, r.anyURL(rng), http.MethodPost, "/gc", request)
	switch {
	case err != nil, a.Code != 0 && a.Temporary():
	case a.Code != 0:
		r.Wrong("the collection of host %s is refused: %s: %s", host(h), a.Reason, a.Message)
	default:
		r.Count("operation GC")
	}
}

// conflict reports, for a container of the crowd, that somebody else answers for the address that it got: it has lost
// the address from some moment of the call on, or still has it, where no replica heard of that.
func (r *round) conflict(ctx context.Context, b *sandbox, rng *rand.Rand) {
	from := r.history.Now()
	mac := fmt.Sprintf("02:00:00:%02x:%02x:%02x", rng.IntN(256), rng.IntN(256), rng.IntN(256))
	a, err := r.callers.Once(ctx, rng, r.anyURL(rng), http.MethodPost, "/ip/"+b.addr.String()+"/conflict",
		wire.ConflictRequest{ContainerID: b.id, IfName: "eth0", MAC: mac})
	if err == nil && a.Code != 0 && !a.Temporary() {
		r.Wrong("the report of container %.8s of %s about %s is refused: %s: %s", b.id, b.who(), b.addr, a.Reason, a.Message)
	}
	if err != nil || a.Code != 0 {
		return // it has the address until its DEL, for all that is known
	}
	r.note(b, b.addr, false, from, r.history.Now())
	b.addr = netip.Addr{}
	r.Count("operation conflict")
}
