package importer

import (
	"cmp"
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/leasing"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/netservice"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// netserviceJob holds the work of an import, and its results.
type netserviceJob struct {
	pools []v1.BCSNetPool
	plan  netservice.Plan
	// done are the objects as they are stored, or would be: pools, then claims, then leases.
	done   []unstructured.Unstructured
	leases []lease.Lease
}

func (j *netserviceJob) empty() bool {
	return len(j.pools) == 0 && len(j.plan.Claims) == 0 && len(j.plan.Leases) == 0
}

// cordoned names the pools that an import made.
func (j *netserviceJob) cordoned() (names []string) {
	for _, p := range j.pools {
		names = append(names, p.Name)
	}
	return names
}

// plan reads both systems and compares them.
func (v *importNetservice) plan(ctx context.Context, a *leasing.Allocator) (*netserviceJob, error) {
	defer v.Say.WaitLater("reading pools, claims, addresses and pods in " + v.Where())()
	now := a.Leases.Now()
	pools, ips, claims, err := v.readOld(ctx)
	if err != nil {
		return nil, err
	}
	if err := a.Open(ctx, v.App); err != nil {
		return nil, err
	}
	ours, err := v.ourClaims(ctx)
	if err != nil {
		return nil, err
	}
	pods, err := resource.AllPods(ctx, v.App)
	if err != nil {
		return nil, resource.Explain(v.App, err)
	}
	job := &netserviceJob{pools: netservice.NewPools(pools, func(name string) bool {
		_, exists := a.Index.Pools.Get(name)
		return exists
	})}
	for i := range job.pools {
		a.Index.Pools.SetPool(store.Pool(&job.pools[i]))
	}
	job.plan = netservice.Make(netservice.Input{
		IPs: ips, Claims: claims, Index: a.Index, Ours: ours, Pods: pods, Now: now, By: v.Author(ctx),
	})
	return job, nil
}

// readOld reads the objects of the released program. Its earliest releases have no claims.
func (v *importNetservice) readOld(
	ctx context.Context,
) (pools []netservice.Pool, ips []netservice.IP, claims []netservice.Claim, err error) {
	items, served, err := v.listOld(ctx, netservice.PoolResource)
	if err == nil && !served {
		err = app.Refuse(app.ReasonPoolNotFound, "the cluster does not serve %s of %s: there is nothing to take over",
			netservice.PoolResource, netservice.GroupVersion()).WithHint(
			"see which clusters there are: kubectl config get-contexts")
	}
	if err != nil {
		return nil, nil, nil, err
	}
	if pools, err = netservice.Read[netservice.Pool](items); err != nil {
		return nil, nil, nil, err
	}
	if items, _, err = v.listOld(ctx, netservice.IPResource); err != nil {
		return nil, nil, nil, err
	}
	if ips, err = netservice.Read[netservice.IP](items); err != nil {
		return nil, nil, nil, err
	}
	if items, _, err = v.listOld(ctx, netservice.ClaimResource); err != nil {
		return nil, nil, nil, err
	}
	claims, err = netservice.Read[netservice.Claim](items)
	slices.SortFunc(claims, func(a, b netservice.Claim) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return pools, ips, claims, err
}

// listOld lists one kind of the released program; served is false where the API server does not know it.
func (v *importNetservice) listOld(
	ctx context.Context, kind string,
) (items []unstructured.Unstructured, served bool, err error) {
	c, err := v.Dynamic()
	if err != nil {
		return nil, false, err
	}
	items, err = resource.ListPages(ctx, c.Resource(netservice.GroupVersion().WithResource(kind)), metav1.ListOptions{})
	switch {
	case resource.NoSuchResource(err):
		return nil, false, nil
	case err != nil:
		return nil, false, resource.Explain(v.App, err)
	}
	return items, true, nil
}

// ourClaims reads the claims of this release, by namespace/name.
func (v *importNetservice) ourClaims(ctx context.Context) (map[string]*v1.BCSNetIPClaim, error) {
	api, err := resource.NewClaims(v.App)
	if err != nil {
		return nil, err
	}
	all, err := api.List(ctx, "", metav1.ListOptions{})
	out := make(map[string]*v1.BCSNetIPClaim, len(all))
	for _, c := range all {
		out[c.FullName()] = c.BCSNetIPClaim
	}
	return out, err
}

// show prints what an import would do and what not. The leases go to standard output as a table; other formats print
// all objects as they are stored.
func (v *importNetservice) show(job *netserviceJob) error {
	p := job.plan
	if job.empty() {
		v.Say.Note("nothing to take over: what the released program has is here")
	} else {
		v.Say.Start("to take over: %s, %s, %s", humanize.Plural(len(job.pools), "pool"),
			humanize.Plural(len(p.Claims), "claim"),
			humanize.Plural(len(p.Leases), "address"))
	}
	if p.Already > 0 {
		v.Say.Note("%s %s here already", humanize.Plural(p.Already, "address"), humanize.OneOr(p.Already, "is", "are"))
	}
	if len(p.Leases) > 0 && v.output.Printer == nil {
		columns := slices.DeleteFunc(resource.LeaseColumns(v.App, true),
			func(c printer.Column[lease.Lease]) bool { return c.Name == "AGE" || c.Name == "IF" })
		if err := printer.NewTable(&v.output, columns).Write(v.Out, p.Leases); err != nil {
			return err
		}
	}
	for _, r := range p.Left {
		v.Say.Note("left: %s: %s", r.Object, r.Cause)
	}
	for _, r := range p.Conflicts {
		v.Say.Warn("%s: %s", r.Object, r.Cause)
	}
	return nil
}
