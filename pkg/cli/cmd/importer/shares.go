package importer

import (
	"fmt"

	"go4.org/netipx"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/importer"
	"github.com/bcsnet/bcsnet/pkg/importer/system"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

func cutOverHelp(of system.System) string {
	if of.Withdrawer == nil {
		return ""
	}
	return `

With --cut-over both systems run: only the pods of one node change. The other
system is told to withdraw the addresses of these pods and some free ones;
after --settle it looks again, and what is free or with those pods belongs to
the pool here. Nothing else of the other system is changed. Run it again when
it was interrupted, for the next node, or when the pool needs more addresses.`
}

func cutOverExample(of system.System) string {
	if of.Withdrawer == nil {
		return ""
	}
	return "\n  bcsnetctl import " + of.Name + " --cut-over node-1 --addresses 32 --dry-run=client"
}

// showShares prints the plan of a cut-over.
func (v *takeOver) showShares(shares []importer.Share, wrong []importer.Remark) error {
	v.Say.Start("to take over from %s: the pods of %s", v.system.Title, v.node)
	for _, r := range wrong {
		v.Say.Warn("%s: %s", r.Object, r.Cause)
	}
	idle := true
	for _, s := range shares {
		idle = idle && !s.Withdraws() && !s.Pending() && len(s.Hold) == 0
		if len(s.Stay.Ranges()) > 0 {
			v.Say.Note("pool %s: %s stay with %s until their pods end: %s", s.Pool.Name, resource.Addresses(s.Stay),
				v.system.Title, resource.Spell(s.Stay))
		}
	}
	for _, s := range shares {
		if n := ipaddr.SizeOfSet(s.Named); n > 0 {
			v.Say.Note("pool %s: %s %s with %s, which gives %s again to pods of the same names: such workloads move "+
				"when the whole cluster switches: %s", s.Pool.Name, resource.Addresses(s.Named),
				humanize.OneOr(int(n), "stays", "stay"), v.system.Title, humanize.OneOr(int(n), "it", "them"),
				resource.Spell(s.Named))
		}
	}
	if idle && len(wrong) == 0 {
		v.Say.Note("nothing to withdraw: what belongs here is here")
	}
	if v.output.Printer != nil {
		var items []unstructured.Unstructured
		for _, s := range shares {
			items = append(items, shareObject(v.node, s))
		}
		return v.output.List(v.Out, items)
	}
	set := func(name string, of func(importer.Share) *netipx.IPSet) printer.Column[importer.Share] {
		return printer.Column[importer.Share]{
			Name: name, Cell: func(s importer.Share) string { return resource.Spell(of(s)) },
			Whole: func(s importer.Share) string { return ipaddr.FormatSet(of(s)) },
		}
	}
	return printer.NewTable(&v.output, []printer.Column[importer.Share]{
		{Name: "POOL", Cell: func(s importer.Share) string { return s.Pool.Name }},
		set("OF PODS", func(s importer.Share) *netipx.IPSet { return s.Moved }),
		set("FREE", func(s importer.Share) *netipx.IPSet { return s.Taken }),
		set("WITHDRAWN", func(s importer.Share) *netipx.IPSet { return importer.Union(s.Settled, s.Back) }),
		{Name: "LEFT THERE", Cell: func(s importer.Share) string { return fmt.Sprint(s.Left) }},
	}).Write(v.Out, shares)
}

// shareObject returns what becomes of a pool, for programs.
func shareObject(node string, s importer.Share) unstructured.Unstructured {
	list := func(set *netipx.IPSet) []any {
		out := []any{}
		for _, r := range set.Ranges() {
			out = append(out, ipaddr.FormatRange(r))
		}
		return out
	}
	return unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1.GroupVersion.String(), "kind": resource.PoolKind,
		"metadata": map[string]any{"name": s.Pool.Name},
		"cutOver": map[string]any{
			"node": node, "ofPods": list(s.Moved), "free": list(s.Taken), "stay": list(importer.Union(s.Stay, s.Named)),
			"withdrawn": list(importer.Union(s.Settled, s.Back)), "leftThere": fmt.Sprint(s.Left),
		},
	}}
}
