package importer

import (
	"context"
	"net/netip"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/importer"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

// verify reads everything here again after an import, and compares it with the rows: a plan that has nothing to do
// proves that all is as the other system has it. What an import in another terminal made counts as well.
func (v *takeOver) verify(ctx context.Context, rows importer.Rows) error {
	if v.DryRun != app.DryRunNone {
		return nil
	}
	again, err := v.compare(ctx, rows, v.leases.Now())
	if err != nil {
		return err
	}
	if len(again.Pools)+len(again.Claims)+len(again.Leases) == 0 {
		v.Say.Done("read back: %s %s %s", humanize.Plural(again.Already, "address"),
			humanize.OneOr(again.Already, "matches", "match"), v.system.Title)
		return nil
	}
	var addrs []netip.Addr
	for _, l := range again.Leases {
		addrs = append(addrs, l.Addr)
	}
	where := ""
	if len(addrs) > 0 {
		where = ": " + resource.Spell(ipaddr.SetOfAddrs(addrs...))
	}
	return app.Refuse(app.ReasonLeaseChanged, "read back: %s, %s and %s are not here as %s has them%s",
		humanize.Plural(len(again.Pools), "pool"), humanize.Plural(len(again.Claims), "claim"),
		humanize.Plural(len(again.Leases), "address"), v.system.Title, where).WithHint("run it again")
}
