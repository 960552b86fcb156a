package allocator

import "net/netip"

// caller is what the sender of a DEL acts for: one host, or else one namespace, or all.
type caller struct {
	host      netip.Addr
	namespace string
}

// tombstoneKey is what a DEL was about; an empty namespace, ifName or network covers all of them.
type tombstoneKey struct {
	deletedHolder
	namespace, ifName, network string
}

// callers returns for whom the tombstones of a DEL are kept. A host may have several addresses, and its ADDs name any
// of them.
func (r ReleaseRequest) callers() (all []caller) {
	if r.OnHosts == nil {
		return []caller{{namespace: r.Namespace}}
	}
	for _, host := range r.OnHosts {
		all = append(all, caller{host: host})
	}
	return all
}

// deletedHolder names a holder.
type deletedHolder struct {
	kind holderKind
	name string
}

type holderKind uint8

const (
	ofContainer holderKind = iota
	// ofOwner is for all that an owner holds.
	ofOwner
	// ofBareOwner is for what an owner holds without a container.
	ofBareOwner
)

// holders returns whom the tombstones of a DEL are for. As in matches, a DEL that names owner and container leaves
// other containers of the owner alone.
func (r ReleaseRequest) holders() (all []deletedHolder) {
	if r.ContainerID != "" {
		all = append(all, deletedHolder{ofContainer, r.ContainerID})
	}
	switch {
	case r.Owner == "":
	case r.ContainerID == "":
		all = append(all, deletedHolder{ofOwner, r.Owner})
	default:
		all = append(all, deletedHolder{ofBareOwner, r.Owner})
	}
	return all
}
