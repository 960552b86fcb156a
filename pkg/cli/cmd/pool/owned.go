package pool

import (
	"context"
	"encoding/json"
	"net/netip"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/recovery"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// ownersAnnotation holds the addresses of owners in a file of pool export. No pod reports these addresses, so nothing
// else could restore them.
const ownersAnnotation = "networkextension.bkbcs.tencent.com/owners"

// owned is an address of an owner, with all that identifies the owner to the allocator. The same request then gets the
// same address again.
type owned struct {
	Address     string `json:"address"`
	Owner       string `json:"owner"`
	Namespace   string `json:"namespace,omitempty"`
	Host        string `json:"host,omitempty"`
	IfName      string `json:"ifName,omitempty"`
	ContainerID string `json:"containerID,omitempty"`
}

// writeOwners adds the addresses of owners to an exported pool.
func writeOwners(o *unstructured.Unstructured, leases []lease.Lease) error {
	if len(leases) == 0 {
		return nil
	}
	var all []owned
	for _, l := range leases {
		all = append(all, owned{
			l.Addr.String(), l.Owner, l.Namespace, resource.AddrText(l.Host), l.IfName, l.ContainerID,
		})
	}
	return annotate(o, ownersAnnotation, all)
}

// readOwners returns the leases of the owners in a file, without the settings of the pool.
func readOwners(o *unstructured.Unstructured) (leases []lease.Lease, err error) {
	text := o.GetAnnotations()[ownersAnnotation]
	if text == "" {
		return nil, nil
	}
	wrong := func(format string, args ...any) error {
		return app.Refuse(app.ReasonPoolInvalid, "pool %s: annotation %s: "+format,
			append([]any{o.GetName(), ownersAnnotation}, args...)...)
	}
	var all []owned
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		return nil, wrong("%v", err)
	}
	for _, one := range all {
		l := lease.Lease{State: lease.Active, HeldFinalizer: true}
		l.Owner, l.Namespace, l.IfName, l.ContainerID = one.Owner, one.Namespace, one.IfName, one.ContainerID
		if l.Addr, err = ipaddr.ParseAddr(one.Address); err != nil {
			return nil, wrong("%v", err)
		}
		if one.Owner == "" {
			return nil, wrong("address %s has no owner", one.Address)
		}
		if one.Host != "" {
			if l.Host, err = ipaddr.ParseAddr(one.Host); err != nil {
				return nil, wrong("%v", err)
			}
		}
		leases = append(leases, l)
	}
	return leases, nil
}

// giveBack returns addresses to their former owners. It reports and skips addresses that somebody else holds, and
// owners that hold another address of the pool.
func (v *poolImport) giveBack(ctx context.Context, pool string, all []lease.Lease, created bool) app.Several {
	if len(all) == 0 {
		return nil
	}
	var addrs []netip.Addr
	if created && v.DryRun != app.DryRunNone { // before the pool exists, nobody can know who holds the addresses
		for _, l := range all {
			addrs = append(addrs, l.Addr)
		}
		v.sayGivenBack(addrs)
		return nil
	}
	leases, err := v.Leases()
	if err != nil {
		return app.Several{err}
	}
	x, err := resource.PoolIndex(ctx, v.App)
	if err != nil {
		return app.Several{err}
	}
	for _, l := range all {
		addrs = append(addrs, l.Addr)
	}
	now, err := resource.ReadAddresses(ctx, v.App, leases, addrs)
	if err != nil {
		return app.Several{err}
	}
	others, err := resource.HeldLeases(ctx, v.App, resource.LeaseQuery{Pool: pool}, ownedByNoPod)
	if err != nil {
		return app.Several{err}
	}
	given := make([]bool, len(all))
	failures := resource.InBulk(ctx, v.App, all, "given back", func(i int, l lease.Lease) (err error) {
		given[i], err = v.giveOne(ctx, x, leases, l, now[i], others)
		return err
	})
	addrs = nil
	for i, l := range all {
		if given[i] {
			addrs = append(addrs, l.Addr)
		}
	}
	v.sayGivenBack(addrs)
	return app.Flatten(resource.Unfinished(ctx, "given back", all, failures))
}

func (v *poolImport) sayGivenBack(addrs []netip.Addr) {
	if n := len(addrs); n > 0 {
		v.Say.Done("%s given back to %s: %s", humanize.Plural(n, "address"), humanize.OneOr(n, "its owner",
			"their owners"),
			resource.Spell(ipaddr.SetOfAddrs(addrs...)))
	}
}

// giveOne returns an address to its owner; now is its current lease. given is false if the owner already has it.
func (v *poolImport) giveOne(
	ctx context.Context, x *index.Index, leases *store.Client, l, now lease.Lease, others []lease.Lease,
) (given bool, err error) {
	pool, refusal := x.Candidate(l.Addr, v.Now())
	if pool.Name == "" {
		return false, refusal
	}
	for _, o := range others {
		if o.Addr != l.Addr && o.Owner == l.Owner && o.IfName == l.IfName && o.Addr.Is4() == l.Addr.Is4() {
			return false, app.Refuse(ipam.ReasonAddressInUse,
				"address %s of pool %s is not given back: %s holds %s by now",
				l.Addr, pool.Name, l.Owner, o.Addr).
				WithHint("keep that one, or import again after: bcsnetctl ip release %s", o.Addr)
		}
	}
	l.Params, l.Updated = pool.Params(), leases.Now()
	l.StartedAt = l.Updated
	if now.State == lease.Available && v.DryRun != app.DryRunClient {
		l.Version, l.Epoch = now.Version, now.Epoch
		now, given, err = recovery.Create(ctx, leases, l)
	} else {
		given = now.State == lease.Available
	}
	switch {
	case err != nil:
		return false, resource.Explain(v.App, err)
	case given || now.State == lease.Active && now.Owner == l.Owner:
		return given, nil
	}
	by := "it is reserved"
	if now.State == lease.Active {
		by = now.Where() + " holds it now"
	}
	return false, app.Refuse(ipam.ReasonAddressInUse, "address %s of pool %s is not given back to %s: %s", l.Addr,
		pool.Name, l.Owner, by).WithHint("see what would free it: bcsnetctl ip describe %s", l.Addr)
}

func ownedByNoPod(l lease.Lease) bool { return l.State == lease.Active && l.Owner != "" }
