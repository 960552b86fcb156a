package node

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/bcsnet/bcsnet/pkg/gone"
	"github.com/bcsnet/bcsnet/pkg/hosts"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// Former is a node that claimed the address of a host, by the API server's clock until Until, and is still there
// without it.
type Former struct {
	Host  netip.Addr
	Name  string
	Until time.Time
}

// Concerns reports whether the container of a lease with the same host, written at a time, may be on the former node.
func (f Former) Concerns(written time.Time) bool { return !written.After(f.Until.Add(gone.Skew)) }

// noteLeft records which addresses a node no longer claims. Addresses that only its annotation gave it do not count: an
// operator who removes one there says that the machine does not have it.
func (n *Nodes) noteLeft(was, is hosts.Node) {
	for _, host := range was.Addrs {
		if slices.Contains(was.Further, host) {
			continue
		}
		n.leave(Former{host, was.Name, n.now()})
	}
	for _, host := range is.Addrs {
		n.comeBack(host, is.Name)
	}
}

// leave records that a node no longer claims an address.
func (n *Nodes) leave(f Former) {
	if n.left[f.Host] == nil {
		n.left[f.Host] = map[string]time.Time{}
	}
	n.left[f.Host][f.Name] = f.Until
}

// comeBack forgets that a node claimed an address before.
func (n *Nodes) comeBack(host netip.Addr, name string) {
	if delete(n.left[host], name); len(n.left[host]) == 0 {
		delete(n.left, host)
	}
}

// Of returns the nodes on which the container of a lease may be: those that claim its host, and those that claimed it
// when the lease was written. An address may move to another node while containers run on the first one.
func (n *Nodes) Of(l lease.Lease) []Claim {
	all := n.At(l.Host)
	n.mu.RLock()
	defer n.mu.RUnlock()
	for _, name := range slices.Sorted(maps.Keys(n.left[l.Host])) {
		if (Former{l.Host, name, n.left[l.Host][name]}).Concerns(l.Updated) {
			all = append(all, Claim{n.table.Get(name), n.away[name]})
		}
	}
	return all
}

// Recall adds what an earlier process knew of former nodes. It leaves out nodes that are gone, and those that claim the
// address again. It must be called after Set was called for all nodes.
func (n *Nodes) Recall(all []Former) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, f := range all {
		is := n.table.Get(f.Name)
		if is.Name == "" || slices.Contains(is.Addrs, f.Host) || n.left[f.Host][f.Name].After(f.Until) {
			continue
		}
		n.leave(f)
	}
}

// Moved reports whether an address has a former node.
func (n *Nodes) Moved() bool {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return len(n.left) > 0
}

// Formers returns the former nodes of all addresses, the latest first, and forgets those that are no longer needed.
func (n *Nodes) Formers(needed func(Former) bool) (all []Former) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for host, nodes := range n.left {
		for name, until := range nodes {
			if f := (Former{host, name, until}); needed(f) {
				all = append(all, f)
			} else {
				n.comeBack(host, name)
			}
		}
	}
	slices.SortFunc(all, func(a, b Former) int {
		return cmp.Or(b.Until.Compare(a.Until), a.Host.Compare(b.Host), cmp.Compare(a.Name, b.Name))
	})
	return all
}
