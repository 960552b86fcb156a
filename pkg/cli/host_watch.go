package cli

import (
	"cmp"
	"context"
	"maps"
	"net/netip"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// hostWatch puts together what pools, addresses and nodes say of hosts, again and again.
type hostWatch struct {
	hosts   watched[hostRow]
	pools   map[string]pool
	holders map[string]netip.Addr // hosts by the name of the address
	nodes   map[string]node
	blind   bool
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
		fromAddresses: {resource(v1.IPResource), metav1.ListOptions{FieldSelector: active.selector()}},
		fromNodes:     {kind: nodeResource()},
	}
	w := &hostWatch{
		hosts: watched[hostRow]{
			view:    newView(v.session, &v.output, hostColumns(), v.show, func(all []hostRow) string { return plural(len(all), "host") }),
			compare: byHost,
			items:   map[string]hostRow{},
		},
		pools: map[string]pool{}, holders: map[string]netip.Addr{}, nodes: map[string]node{},
	}
	if _, err := v.session.nodes(ctx); err != nil {
		v.warnBlind(err)
		w.blind, from = true, from[:fromNodes]
	}
	w.unread = len(from)
	return v.session.watch(ctx, from, w.take, w.tick)
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
		err = keep(w.holders, c, readHost)
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

func readHost(u *unstructured.Unstructured) (netip.Addr, error) {
	l, err := readLease(u)
	return l.Host, err
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
	return w.hosts.view.refresh(w.hosts.all)
}

func (w *hostWatch) compute() error {
	w.stale = false
	rows := w.facts().rows()
	gone := maps.Clone(w.hosts.items)
	for _, r := range rows {
		name := r.host.String()
		before, known := gone[name]
		delete(gone, name)
		if known && reflect.DeepEqual(before, r) {
			continue
		}
		if err := w.hosts.put(name, r); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(gone)) {
		if err := w.hosts.drop(name); err != nil {
			return err
		}
	}
	if !w.hosts.begun {
		return w.hosts.begin()
	}
	return nil
}

func (w *hostWatch) facts() hostFacts {
	f := hostFacts{active: map[netip.Addr]int{}, blind: w.blind}
	for _, p := range w.pools {
		f.pools = append(f.pools, p)
	}
	slices.SortFunc(f.pools, func(a, b pool) int { return cmp.Compare(a.Name, b.Name) })
	for _, h := range w.holders {
		if h.IsValid() {
			f.active[h]++
		}
	}
	for _, name := range slices.Sorted(maps.Keys(w.nodes)) {
		f.nodes = append(f.nodes, w.nodes[name])
	}
	return f
}
