package address

import (
	"context"
	"net/netip"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

type ipDescribe struct {
	*app.App
	output printer.Output
	args   []string
	addrs  []netip.Addr
}

func newDescribe(s *app.App, group string) *cobra.Command {
	v := &ipDescribe{App: s}
	cmd := &cobra.Command{
		Use: "describe ADDRESS...", Aliases: []string{"show"}, Args: app.Takes(1, 0), RunE: app.Runs(v),
		Short: "Show who has an address, since when, and how to get it back",
		Long: `Show all that is known of addresses: who holds one, since when and on which
host, what became of the pod, who held it before, and the command that frees it.
Of a free address, which pool hands it out, or why nobody gets it.

- reads addresses from standard input, one a line.`,
		Example: `  bcsnetctl ip describe 10.0.0.20
  bcsnetctl ip describe 10.0.0.20 -o yaml`,
		ValidArgsFunction: resource.CompleteAddresses(s, lease.Active, lease.Reserved),
	}
	v.output.AddToChange(cmd)
	return resource.Under(group, cmd)
}

func (v *ipDescribe) Complete(args []string) (err error) {
	v.args, err = resource.ArgsOrLines(v.App, "addresses", args)
	return err
}

func (v *ipDescribe) Validate() (err error) {
	if v.addrs, err = resource.ParseAddresses(v.args); err != nil {
		return err
	}
	return v.output.Validate()
}

func (v *ipDescribe) Run(ctx context.Context) error {
	if err := resource.FitLengths(ctx, v.App, v.args); err != nil {
		return err
	}
	c, err := v.Dynamic()
	if err != nil {
		return err
	}
	objects := make([]*unstructured.Unstructured, len(v.addrs))
	var plans *ipam.Index
	group, asking := errgroup.WithContext(ctx)
	group.SetLimit(resource.AtOnce)
	group.Go(func() (err error) {
		plans, err = resource.PoolIndex(asking, v.App)
		return err
	})
	for i, a := range v.addrs {
		group.Go(func() error {
			o, err := c.Resource(resource.Of(v1.IPResource)).Get(asking, ipaddr.ObjectName(a), metav1.GetOptions{})
			switch {
			case err == nil:
				objects[i] = o
			case !apierrors.IsNotFound(err) || resource.NoSuchResource(err):
				return resource.Explain(v.App, err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	views, err := v.views(ctx, plans, objects)
	if err != nil {
		return err
	}
	if v.output.Printer != nil {
		return v.print(views)
	}
	return v.write(views)
}

// addressView gathers what describe shows of an address.
type addressView struct {
	lease.Lease
	// stored is the object; nil where there is none.
	stored *unstructured.Unstructured
	// pod is what became of the holder's pod, unread why that is not known.
	pod    resource.PodState
	unread error
	// named is the pool that the object names, exists false when there is none of that name any more.
	named  ipam.Pool
	exists bool
	// serving is the pool that hands the address out; without name where none does. refusal says why
	// nobody gets the address.
	serving ipam.Pool
	refusal *ipam.Refusal
	// claim is the claim that the address belongs to; nil where it belongs to none, or where that does not exist.
	claim *v1.BCSNetIPClaim
	// near is the nearest pool of an address that no pool's subnet holds.
	near string
}

// views puts together what was read, and reads what became of the pods.
func (v *ipDescribe) views(
	ctx context.Context, plans *ipam.Index, objects []*unstructured.Unstructured,
) ([]addressView, error) {
	all := make([]lease.Lease, len(objects))
	free := false
	for i, o := range objects {
		all[i] = lease.Lease{Addr: v.addrs[i]}
		if o != nil {
			var err error
			if all[i], err = resource.ReadLease(o); err != nil {
				return nil, err
			}
		}
		free = free || all[i].State == lease.Available
		plans.Feed.Wrote(all[i])
	}
	if free {
		nodes, err := resource.ListNodes(ctx, v.App)
		if err != nil {
			v.Say.Warn("nodes cannot be read, so it is unknown whether one has the address itself: %v", err)
		}
		for _, n := range nodes {
			plans.Pools.SetNode(n.Name, n.Known())
		}
	}
	pods, unread := resource.PodStates(ctx, v.App, all)
	claims := resource.ClaimsOfLeases(ctx, v.App, all)
	var views []addressView
	for i, l := range all {
		view := addressView{Lease: l, stored: objects[i], pod: pods[i], unread: unread[i]}
		view.named, view.exists = plans.Pools.Get(l.Pool)
		view.serving, view.refusal = plans.Candidate(l.Addr, v.Now())
		view.claim = claims[l.Claim]
		view.near = nearestPool(l.Addr, plans.Pools.All())
		views = append(views, view)
	}
	return views, nil
}

// nearestPool returns the pool whose subnet has most leading bits in common with an address; empty when one
// holds it, or when none is near at all.
func nearestPool(a netip.Addr, pools []ipam.Pool) (near string) {
	best := 7 // fewer bits in common say nothing
	for _, p := range pools {
		net := p.Plan.Subnet
		if !p.Valid() || net.Addr().Is4() != a.Is4() {
			continue
		}
		if net.Contains(a) {
			return ""
		}
		bits := 0
		for bits < net.Bits() && netip.PrefixFrom(net.Addr(), bits+1).Contains(a) {
			bits++
		}
		if bits > best || bits == best && near != "" && p.Name < near {
			best, near = bits, p.Name
		}
	}
	return near
}

// print prints the objects; of an address without one, a view.
func (v *ipDescribe) print(views []addressView) error {
	var items []unstructured.Unstructured
	for _, view := range views {
		if view.stored == nil {
			view.stored = &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": app.ProgramName + "/v1", "kind": "Address",
				"metadata": map[string]any{"name": ipaddr.ObjectName(view.Addr)},
				"address":  view.Addr.String(), "state": view.State.String(), "pool": view.serving.Name, "problem": view.why(),
			}}
		}
		items = append(items, *view.stored)
	}
	if len(items) == 1 {
		return v.output.Object(v.Out, &items[0])
	}
	return v.output.List(v.Out, items)
}
