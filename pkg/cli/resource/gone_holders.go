package resource

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// GoneHolders describes how many leases have pods that are gone, which host has most of them, and the next command.
// text is empty if there are none.
func GoneHolders(ctx context.Context, s *app.App, all []lease.Lease) (text, next string, err error) {
	states, unread := PodStates(ctx, s, all)
	held, hosts := 0, map[netip.Addr]int{}
	for i, l := range all {
		if err = cmp.Or(err, unread[i]); states[i].Check != "" {
			held, hosts[l.Host] = held+1, hosts[l.Host]+1
		}
	}
	if held == 0 || err != nil {
		return "", "", err
	}
	nodes, err := ListNodes(ctx, s)
	if err != nil {
		return "", "", err
	}
	most := slices.MaxFunc(slices.SortedFunc(maps.Keys(hosts), netip.Addr.Compare),
		func(a, b netip.Addr) int { return cmp.Compare(hosts[a], hosts[b]) })
	text = fmt.Sprintf("%s held for pods that are gone, %d of them on host %s",
		humanize.OneOr(held, "1 address is", fmt.Sprintf("%d addresses are", held)), hosts[most], AddrText(most))
	if n, ok := Table(nodes).Best(most); !ok || !n.Ready {
		return text, fmt.Sprintf("host %s is not a Ready node; if its machine is off: bcsnetctl release-host %s", most,
			most), nil
	}
	return text, "see them, and release them: bcsnetctl doctor --only leaks --fix", nil
}
