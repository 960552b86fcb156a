package inspect

import (
	"bytes"
	"context"
	"net/netip"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/cli/view"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

type trace struct {
	*app.App
	output printer.Output
	in     resource.InNamespace
	arg    string
	typed  string     // arg, before it is read
	addr   netip.Addr // invalid for a pod
}

// NewTrace returns the command trace.
func NewTrace(s *app.App) *cobra.Command {
	v := &trace{App: s}
	cmd := &cobra.Command{
		Use: "trace POD|ADDRESS", GroupID: "objects", Args: onePod, RunE: app.Runs(v),
		Short: "Follow a pod to its addresses, or an address to its pod",
		Long: `Follow a pod to its addresses, or an address to its pod: the pod, the workload
that it belongs to, the policy and the annotations that this is from, the claim,
the addresses and their pools.`,
		Example: `  bcsnetctl trace db-0 -n shop
  bcsnetctl trace shop/db-0 -o yaml
  bcsnetctl trace 10.0.0.20`,
		ValidArgsFunction: resource.CompletePods(s, &v.in),
	}
	v.in.AddTo(s, cmd, "the `NAMESPACE` of the pod")
	v.output.AddToView(cmd)
	return cmd
}

func (v *trace) Complete(args []string) error {
	v.typed = podArg(args)[0]
	v.arg = resource.AddressWord(v.typed)
	if a, err := ipaddr.ParseAddr(v.arg); err == nil {
		v.addr = a
		return nil
	}
	return v.in.Complete(v.App)
}

func (v *trace) Validate() error { return v.output.Validate() }

func (v *trace) Run(ctx context.Context) error {
	if err := resource.FitLengths(ctx, v.App, []string{v.typed}); err != nil {
		return err
	}
	t, err := v.find(ctx)
	if err != nil {
		return err
	}
	if v.output.Printer != nil {
		return v.output.Object(v.Out, t.Object("Trace"))
	}
	var b bytes.Buffer
	t.Facts(v.App).Write(&b, v.App, 12)
	_, err = v.Out.Write(b.Bytes())
	return err
}

func (v *trace) find(ctx context.Context) (*view.Lineage, error) {
	if !v.addr.IsValid() {
		key, err := v.in.Key(v.arg)
		if err != nil {
			return nil, err
		}
		return view.LineageOf(ctx, v.App, key, nil)
	}
	leases, err := v.Leases()
	if err != nil {
		return nil, err
	}
	all, err := resource.ReadAddresses(ctx, v.App, leases, []netip.Addr{v.addr})
	if err != nil {
		return nil, err
	}
	l := all[0]
	if l.PodName == "" {
		t := &view.Lineage{Leases: all}
		if l.State == lease.Available {
			x, err := resource.PoolIndex(ctx, v.App)
			if err != nil {
				return nil, err
			}
			pool, refusal := x.Candidate(l.Addr, v.Now())
			if pool.Name == "" {
				return nil, refusal
			}
			t.Leases[0].Params = pool.Params()
		}
		return t, t.Fill(ctx, v.App)
	}
	t, err := view.LineageOf(ctx, v.App, types.NamespacedName{Namespace: l.Namespace, Name: l.PodName}, &l)
	if err == nil && !t.Has(l.Addr) { // the pod of a kept address is gone, or has another address
		t.Leases = append(t.Leases, l)
		err = t.Fill(ctx, v.App)
	}
	return t, err
}
