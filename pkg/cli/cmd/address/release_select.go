package address

import (
	"context"
	"net/netip"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// selection finds leases by a flag.
type selection struct {
	name, usage string
	completes   cobra.CompletionFunc
	// check refuses an invalid value. It is nil if the API server decides.
	check func(word string) error
	// find lists the selected addresses that are in use or kept.
	find func(ctx context.Context, v *ipRelease) ([]lease.Lease, error)
	// single: the flag selects one holder, and it is an error if that is not gone.
	single bool
}

func selections(s *app.App) []selection {
	return []selection{
		{
			name: "network", usage: "what is gone in the pools of a `NETWORK`, and in their groups",
			completes: resource.CompleteNetworks(s), find: ofNetwork,
		},
		{
			name: "pool", usage: "what is gone in a `POOL`", completes: resource.CompletePoolFirst(s, nil),
			find: ofPool,
		},
		{
			name: "group", usage: "what is gone in a `GROUP`, a pool that is a part of another one",
			completes: resource.CompleteGroups(s), find: ofGroup,
		},
		{
			name: "host", usage: "what is gone on a `HOST`, by its IP or its node; when a machine is off: release-host",
			completes: resource.CompleteOneHost(s), check: resource.CheckHost, find: ofHost,
		},
		{
			name: "endpoint",
			usage: "what one `HOLDER` has, if it is gone: NAMESPACE/POD, the ID of a container or 4 digits " +
				"of it, an owner that is not a pod, or an address",
			completes: resource.CompleteEndpoints(s), check: checkEndpoint, find: ofEndpoint, single: true,
		},
	}
}

// taken reports whether an address is in use or kept by a claim.
func taken(l lease.Lease) bool { return l.State == lease.Active || l.IsRetained() }

func ofNetwork(ctx context.Context, v *ipRelease) ([]lease.Lease, error) {
	all, err := resource.AllPools(ctx, v.App)
	if err != nil {
		return nil, err
	}
	in, err := resource.InNetwork(all, v.word)
	if err != nil {
		return nil, err
	}
	names := app.Map(in, func(p resource.Pool) string { return p.Name })
	return v.heldIn(ctx, resource.LeasePools(all, names, true))
}

// heldIn lists the addresses of pools that are in use or kept.
func (v *ipRelease) heldIn(ctx context.Context, names []string) ([]lease.Lease, error) {
	held, err := resource.HeldLeases(ctx, v.App, resource.LeaseQuery{Selectors: resource.TakenOnly()},
		func(l lease.Lease) bool { return taken(l) && slices.Contains(names, l.Pool) })
	return resource.Sides(held, taken), err
}

// ofPool lists the taken addresses of the pool and its blocks, even if the pool itself is gone.
func ofPool(ctx context.Context, v *ipRelease) ([]lease.Lease, error) {
	all, err := resource.AllPools(ctx, v.App)
	if err != nil {
		return nil, err
	}
	held, err := v.heldIn(ctx, append(resource.LeasePools(all, []string{v.word}, false), v.word))
	if err != nil || len(held) > 0 {
		return held, err
	}
	_, err = resource.OnePool(ctx, v.App, v.word)
	return nil, err
}

func ofGroup(ctx context.Context, v *ipRelease) ([]lease.Lease, error) {
	all, err := resource.AllPools(ctx, v.App)
	if err == nil {
		err = resource.CheckGroup(all, v.word)
	}
	if err != nil {
		return nil, err
	}
	return ofPool(ctx, v)
}

func ofHost(ctx context.Context, v *ipRelease) (all []lease.Lease, err error) {
	h, err := resource.FindHost(ctx, v.App, v.word)
	if err != nil {
		return nil, err
	}
	for _, a := range h.Addrs {
		held, err := resource.HeldLeases(ctx, v.App,
			resource.LeaseQuery{Host: a.String(), Selectors: resource.TakenOnly()}, taken)
		if err != nil {
			return nil, err
		}
		all = append(all, held...)
	}
	return all, nil
}

// fewestDigits is the minimum length of an abbreviated container ID.
const fewestDigits = 4

// endpointWord removes the parts that commands print around an endpoint: the prefix length after an address, the
// runtime's name before a container ID.
func endpointWord(word string) string {
	word = resource.AddressWord(strings.TrimSpace(word))
	if _, id, ok := strings.Cut(word, "://"); ok {
		return id
	}
	return word
}

func checkEndpoint(word string) error {
	namespace, pod, both := strings.Cut(endpointWord(word), "/")
	if both && (namespace == "" || pod == "" || strings.Contains(pod, "/")) {
		return app.Usagef("%q is not NAMESPACE/POD, a container ID or an address", word)
	}
	return nil
}

// ofEndpoint lists the leases of a pod, container or owner, or the lease of an address.
func ofEndpoint(ctx context.Context, v *ipRelease) ([]lease.Lease, error) {
	if err := resource.FitLengths(ctx, v.App, []string{v.word}); err != nil {
		return nil, err
	}
	word := endpointWord(v.word)
	if a, err := ipaddr.ParseAddr(word); err == nil {
		all, err := resource.ReadAddresses(ctx, v.App, v.leases, []netip.Addr{a})
		return resource.Sides(all, func(lease.Lease) bool { return true }), err
	}
	if namespace, pod, isPod := strings.Cut(word, "/"); isPod {
		held, err := resource.HeldLeases(ctx, v.App,
			resource.LeaseQuery{Namespace: namespace, Pod: pod, Selectors: resource.TakenOnly()}, taken)
		if err == nil && len(held) == 0 {
			err = app.Refuse(ipam.ReasonNotFound, "pod %s has no address, and none is kept for it", word).
				WithHint("see all pods that have one: bcsnetctl lease list")
		}
		return held, err
	}
	for _, field := range []string{"status.containerID", "status.owner"} {
		held, err := resource.HeldLeases(ctx, v.App,
			resource.LeaseQuery{Selectors: resource.Selectors{Fields: fields.OneTermEqualSelector(field,
				word).String()}}, taken)
		if err != nil || len(held) > 0 {
			return held, err
		}
	}
	return v.ofContainer(ctx, word)
}

// ofContainer lists the leases of the container whose ID begins with digits. It fails if several containers match.
func (v *ipRelease) ofContainer(ctx context.Context, digits string) (held []lease.Lease, err error) {
	if len(digits) >= fewestDigits {
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
		return nil, app.Refuse(ipam.ReasonNotFound, "no container or owner %q has an address", digits).
			WithHint("a pod is named as NAMESPACE/POD; to look for anything: bcsnetctl ip find %s", digits)
	case 1:
		return held, nil
	default:
		return nil, app.Usagef("the IDs of %s begin with %s: %s", humanize.Plural(len(ids), "container"), digits,
			humanize.List(ids)).WithHint("write more digits")
	}
}
