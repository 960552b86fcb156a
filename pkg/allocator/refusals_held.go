package allocator

import (
	"slices"
	"time"

	"github.com/bcsnet/bcsnet/pkg/explain"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

func deleted(r Request) *ipam.Refusal {
	if r.ContainerID == "" {
		return ipam.Refuse(ipam.ReasonContainerDeleted, "owner %s gave up its addresses after this request began",
			r.Owner).
			WithHint("if it needs one again, ask with a startedAt after that")
	}
	return ipam.Refuse(ipam.ReasonContainerDeleted, "container %s was deleted after this request began", r.ContainerID)
}

func superseded(r Request, l lease.Lease) *ipam.Refusal {
	refusal := ipam.Refuse(ipam.ReasonContainerSuperseded,
		"container %s holds address %s of %s in place of container %s",
		l.ContainerID, l.Addr, r.who(), r.ContainerID)
	if slices.Contains(l.Superseded, r.ContainerID) {
		return refusal
	}
	return refusal.WithHint("if container %s is the newer one, the clock of host %s was set back: "+
		"ask again until it has caught up, five minutes at most", r.ContainerID, r.Host)
}

// waitsForPod refuses a request that has waited for a pod in vain.
func waitsForPod(t *attempt, pod workload.Pod) *ipam.Refusal {
	return ipam.RefuseFacts(ipam.ReasonClaimConflict, explain.Facts{
		Kind: explain.EarlierPodIsEnding, Who: t.who(), Claim: t.constraints.Claim, Pod: pod.Namespace + "/" + pod.Name,
		Until: endsBy(pod).UTC(),
	})
}

// outdated refuses a DEL of what its container or owner holds since later than the DEL began. Silence would leave the
// address with nobody who gives it up, should the clock of the host have been set back.
func outdated(l lease.Lease) *ipam.Refusal {
	return ipam.Refuse(ipam.ReasonReleaseOutdated,
		"%s asked for address %s at %s, after this release began by its startedAt",
		l.Who(), l.Addr, l.StartedAt.Format(time.RFC3339Nano)).
		WithHint("if it is to be released, ask again; if the clock of host %s was set back, "+
			"that helps once it has caught up, after five minutes at most", l.Host)
}

// notHeld refuses a change of an address by somebody who does not hold it.
func notHeld(l lease.Lease) *ipam.Refusal {
	switch {
	case l.IsQuarantined():
		return ipam.Refuse(ipam.ReasonAddressNotHeld, "address %s is quarantined until %s, nobody holds it", l.Addr,
			l.Conflict.Until.Format(time.RFC3339))
	case l.State == lease.Reserved:
		return ipam.Refuse(ipam.ReasonAddressNotHeld, "address %s is reserved, nobody holds it", l.Addr)
	case l.State == lease.Available:
		return ipam.Refuse(ipam.ReasonAddressNotHeld, "address %s is not in use, nobody holds it", l.Addr)
	}
	who := l.Who()
	if l.ContainerID != "" {
		who += " (container " + l.ContainerID + ")"
	}
	heldBy := func(who string) *ipam.Refusal {
		return ipam.Refuse(ipam.ReasonAddressNotHeld, "address %s is held by %s", l.Addr, who)
	}
	return heldBy(who).Naming(l.Holder, heldBy)
}
