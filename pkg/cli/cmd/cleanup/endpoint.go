package cleanup

import (
	"context"
	"net/netip"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/fields"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// minID is the least number of digits of a container ID that stand for the whole.
const minID = 4

// endpointWord returns the word without what surrounds it where it is printed: the length of the subnet behind an
// address, the name of the runtime before a container ID.
func endpointWord(word string) string {
	word = resource.AddressWord(strings.TrimSpace(word))
	if _, id, ok := strings.Cut(word, "://"); ok {
		return id
	}
	return word
}

func checkEndpoint(word string) error {
	namespace, pod, both := strings.Cut(endpointWord(word), "/")
	if word == "" || both && (namespace == "" || pod == "" || strings.Contains(pod, "/")) {
		return app.Usagef("%q is not NAMESPACE/POD, a container ID or an address", word)
	}
	return nil
}

// ofEndpoint lists what one pod, container or owner has; of an address, what is known of that one alone, and nothing
// where it is free, which is said.
func ofEndpoint(ctx context.Context, v *cleanup) ([]lease.Lease, error) {
	if err := resource.FitLengths(ctx, v.App, []string{v.name}); err != nil {
		return nil, err
	}
	word := endpointWord(v.name)
	if a, err := ipaddr.ParseAddr(word); err == nil {
		return v.ofAddress(ctx, a)
	}
	if namespace, pod, isPod := strings.Cut(word, "/"); isPod {
		held, err := v.held(ctx, resource.LeaseQuery{Namespace: namespace, Pod: pod, Selectors: resource.TakenOnly()})
		if err == nil && len(held) == 0 {
			err = app.Refuse(ipam.ReasonNotFound, "pod %s has no address, and none is kept for it", word).
				WithHint("see all pods that have one: bcsnetctl lease list")
		}
		return held, err
	}
	for _, field := range []string{"status.containerID", "status.owner"} {
		held, err := v.held(ctx,
			resource.LeaseQuery{Selectors: resource.Selectors{Fields: fields.OneTermEqualSelector(field, word).String()}})
		if err != nil || len(held) > 0 {
			return held, err
		}
	}
	return v.ofContainer(ctx, word)
}

// ofContainer lists what the container has whose ID begins with some digits, if there is one such container.
func (v *cleanup) ofContainer(ctx context.Context, digits string) (held []lease.Lease, err error) {
	if len(digits) >= minID {
		held, err = resource.HeldLeases(ctx, v.App, resource.LeaseQuery{Status: lease.Active.String()},
			func(l lease.Lease) bool { return strings.HasPrefix(l.ContainerID, digits) })
		if err != nil {
			return nil, err
		}
	}
	var ids []string
	for _, l := range held {
		if !slices.Contains(ids, l.ContainerID) {
			ids = append(ids, l.ContainerID)
		}
	}
	switch len(ids) {
	case 0:
		return nil, app.Refuse(ipam.ReasonNotFound, "no container or owner %s has an address", digits).
			WithHint("a pod is named as NAMESPACE/POD; to look for anything: bcsnetctl ip find %s", digits)
	case 1:
		return held, nil
	default:
		return nil, app.Usagef("%s of %s begin with %s: %s", "the IDs", humanize.Plural(len(ids), "container"), digits,
			humanize.List(ids)).WithHint("write more digits")
	}
}

func (v *cleanup) ofAddress(ctx context.Context, a netip.Addr) ([]lease.Lease, error) {
	all, err := resource.ReadAddresses(ctx, v.App, v.leases, []netip.Addr{a})
	if err != nil {
		return nil, err
	}
	switch l := all[0]; {
	case l.State == lease.Active || l.IsRetained():
		return resource.Sides(all, anySide), nil
	case l.State == lease.Reserved:
		return nil, app.Refuse(app.ReasonAddressReserved, "address %s is reserved: nobody holds it", a).
			WithHint("to have it handed out again: bcsnetctl ip unreserve %s", a)
	default:
		if err := v.known(ctx, l); err != nil {
			return nil, err
		}
		v.Say.Note("%s is free already", a)
		return nil, nil
	}
}

// known refuses an address that is in no pool and has no object: it is misspelt.
func (v *cleanup) known(ctx context.Context, l lease.Lease) error {
	if l.Version != 0 {
		return nil
	}
	x, err := resource.PoolIndex(ctx, v.App)
	if err != nil {
		return err
	}
	if pool, refusal := x.Candidate(l.Addr, v.Now()); pool.Name == "" {
		return refusal
	}
	return nil
}
