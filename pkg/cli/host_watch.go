package cli

import (
	"cmp"
	"context"
	"maps"
	"net/netip"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// hostWatch puts together what pools, addresses and nodes say of hosts, again and again.
type hostWatch struct {
	hosts   watched[hostRow]
	pools   map[string]pool
	holders map[string]heldAddr // by the name of the address
	nodes   map[string]node
	// blind and selected are those of hostFacts.
	blind, selected bool
	// unread are the sources that have not been read whole; stale says that something has changed.
	unread int
	stale  bool
}

// Sources of a hostWatch.
const (
	fromPools = iota
	fromAddresses
	fromNodes
)

// watch goes on and shows what changes.
func (v *hostList) watch(ctx context.Context) error {
	active := leaseQuery{status: ipam.Active.String()}
	from := []source{
		fromPools:     {kind: resource(v1.PoolResource)},
		fromAddresses: {kind: resource(v1.IPResource), which: metav1.ListOptions{FieldSelector: active.selector()}},
		fromNodes:     {kind: nodeResource(), which: v.which.options()},
	}
	w := &hostWatch{
		hosts: watched[hostRow]{
			view:    newView(v.App, &v.output, hostColumns(&v.output), v.show, func(all []hostRow) string { return humanize.Plural(len(all), "host") }),
			compare: byHost,
			items:   map[string]hostRow{},
		},
		pools: map[string]pool{}, holders: map[string]heldAddr{}, nodes: map[string]node{}, selected: v.which.labels != "",
	}
	if _, err := listNodes(ctx, v.App); err != nil {
		if w.selected {
			return err
		}
		v.warnBlind(err)
		w.blind, from = true, from[:fromNodes]
	}
	w.unread = len(from)
	return runView(ctx, v.App, from, w.take, w.tick)
}

// take takes note of a change.
func (w *hostWatch) take(c change) (err error) {
	w.stale = true
	switch {
	case c.kind == watch.Bookmark:
		w.unread--
	case c.source == fromPools:
		err = keep(w.pools, c, readPool)
	case c.source == fromAddresses:
		err = keep(w.holders, c, readHeldAddr)
	default:
		err = keep(w.nodes, c, readNode)
	}
	return err
}

// keep has a map follow the objects.
func keep[T any](all map[string]T, c change, read func(*unstructured.Unstructured) (T, error)) error {
	if c.kind == watch.Deleted {
		delete(all, c.name)
		return nil
	}
	item, err := read(c.object)
	if err == nil {
		all[c.name] = item
	}
	return err
}

// tick shows how the hosts differ from what was shown before.
func (w *hostWatch) tick() error {
	if w.unread > 0 {
		return nil
	}
	if w.stale {
		if err := w.compute(); err != nil {
			return err
		}
	}
	return w.hosts.view.refresh(&w.hosts)
}

func (w *hostWatch) compute() error {
	w.stale = false
	return w.hosts.become(w.facts().rows(), func(r hostRow) string { return r.host.String() })
}

func (w *hostWatch) facts() hostFacts {
	f := hostFacts{active: leaseUsage[netip.Addr]{}, blind: w.blind, selected: w.selected}
	for _, p := range w.pools {
		f.pools = append(f.pools, p)
	}
	slices.SortFunc(f.pools, func(a, b pool) int { return cmp.Compare(a.Name, b.Name) })
	for _, u := range w.holders {
		if u.host.IsValid() {
			f.active.add(u.host, u)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(w.nodes)) {
		f.nodes = append(f.nodes, w.nodes[name])
	}
	return f
}
