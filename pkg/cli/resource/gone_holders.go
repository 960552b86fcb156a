package resource

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/gone"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// GoneHolders says of leases how many are held for pods that are gone, on which host most of them are, and what to do
// next; text is empty for none. It reads all pods and nodes once.
func GoneHolders(ctx context.Context, s *app.App, all []lease.Lease) (text, next string, err error) {
	leases, err := s.Leases()
	if err != nil {
		return "", "", err
	}
	listed, err := AllPods(ctx, s)
	if err != nil {
		return "", "", err
	}
	nodes, err := ListNodes(ctx, s)
	if err != nil {
		return "", "", err
	}
	pods, table := map[types.NamespacedName]*workload.Pod{}, Table(nodes)
	for i, p := range listed {
		pods[types.NamespacedName{Namespace: p.Namespace, Name: p.Name}] = &listed[i]
	}
	held, hosts := 0, map[netip.Addr]int{}
	for _, l := range all {
		e := gone.Evidence{
			Lease: l, Pod: pods[types.NamespacedName{Namespace: l.Namespace, Name: l.PodName}], Now: leases.Now(),
			Others: func(lease.Lease, string) []lease.Lease { return all }, Host: gone.HostOf(table.At(l.Host)),
		}
		if check, _ := gone.Suspect(e); check != "" && check != gone.PodOtherAddress {
			held, hosts[l.Host] = held+1, hosts[l.Host]+1
		}
	}
	if held == 0 {
		return "", "", nil
	}
	most := slices.MaxFunc(slices.SortedFunc(maps.Keys(hosts), netip.Addr.Compare),
		func(a, b netip.Addr) int { return cmp.Compare(hosts[a], hosts[b]) })
	text = fmt.Sprintf("%s held for pods that are gone, %d of them on host %s",
		humanize.OneOr(held, "1 address is", fmt.Sprintf("%d addresses are", held)), hosts[most], AddrText(most))
	if n, ok := table.Best(most); !ok || !n.Ready {
		return text, fmt.Sprintf("host %s is no ready node; if its machine is off: bcsnetctl release-host %s", most,
			most), nil
	}
	return text, "see them, and release them: bcsnetctl doctor --only leaks --fix", nil
}
