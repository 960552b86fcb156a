package host

import (
	"cmp"
	"context"
	"maps"
	"net/netip"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/cli/follow"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// hostWatch makes rows from watched pools, addresses and nodes. It makes them again at each tick after a change.
type hostWatch struct {
	hosts   follow.Watched[hostRow]
	pools   map[string]resource.Pool
	holders map[string]resource.HeldAddr // by the name of the address
	nodes   map[string]resource.Node
	// blind and selected are as in hostFacts.
	blind, selected bool
	// unread counts the sources whose first list is not complete; stale means that the rows must be made again.
	unread int
	stale  bool
}

// Sources of a hostWatch.
const (
	fromPools = iota
	fromAddresses
	fromNodes
)

func (v *hostList) watch(ctx context.Context) error {
	active := resource.LeaseQuery{Status: lease.Active.String()}
	from := []follow.Source{
		fromPools:     {Kind: resource.Of(v1.PoolResource)},
		fromAddresses: {Kind: resource.Of(v1.IPResource), Which: metav1.ListOptions{FieldSelector: active.Selector()}},
		fromNodes:     {Kind: resource.NodeResource(), Which: v.which.Options()},
	}
	w := &hostWatch{
		hosts: follow.Watched[hostRow]{
			View: follow.NewView(v.App, &v.output, hostColumns(&v.output), v.show,
				func(all []hostRow) string { return humanize.Plural(len(all), "host") }),
			Compare: byHost,
			Items:   map[string]hostRow{},
		},
		pools: map[string]resource.Pool{}, holders: map[string]resource.HeldAddr{}, nodes: map[string]resource.Node{},
		selected: v.which.Labels != "",
	}
	if _, err := resource.ListNodes(ctx, v.App); err != nil {
		if w.selected {
			return err
		}
		v.warnBlind(err)
		w.blind, from = true, from[:fromNodes]
	}
	w.unread = len(from)
	return follow.Run(ctx, v.App, from, w.apply, w.tick)
}

// apply stores a change in the maps.
func (w *hostWatch) apply(c follow.Change) (err error) {
	w.stale = true
	switch {
	case c.Kind == watch.Bookmark:
		w.unread--
	case c.Source == fromPools:
		err = follow.Mirror(w.pools, c, resource.ReadPool)
	case c.Source == fromAddresses:
		err = follow.Mirror(w.holders, c, resource.ReadHeldAddr)
	default:
		err = follow.Mirror(w.nodes, c, resource.ReadNode)
	}
	return err
}

// tick prints the changes of the rows since the last tick.
func (w *hostWatch) tick() error {
	if w.unread > 0 {
		return nil
	}
	if w.stale {
		if err := w.compute(); err != nil {
			return err
		}
	}
	return w.hosts.View.Refresh(&w.hosts)
}

func (w *hostWatch) compute() error {
	w.stale = false
	return w.hosts.Become(w.facts().rows(), func(r hostRow) string { return r.host.String() })
}

func (w *hostWatch) facts() hostFacts {
	f := hostFacts{active: resource.LeaseUsage[netip.Addr]{}, blind: w.blind, selected: w.selected}
	for _, p := range w.pools {
		f.pools = append(f.pools, p)
	}
	slices.SortFunc(f.pools, func(a, b resource.Pool) int { return cmp.Compare(a.Name, b.Name) })
	for _, u := range w.holders {
		resource.AddHosts(f.active, u)
	}
	for _, name := range slices.Sorted(maps.Keys(w.nodes)) {
		f.nodes = append(f.nodes, w.nodes[name])
	}
	return f
}
