package ipam

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/bcsnet/bcsnet/pkg/explain"
	"github.com/bcsnet/bcsnet/pkg/internal/failpoint"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// Reason is a stable word for why a request was not done.
type Reason string

// Reasons. ReasonTable documents each.
const (
	ReasonBadRequest          Reason = "BadRequest"
	ReasonBadAddress          Reason = "BadAddress"
	ReasonMissingField        Reason = "MissingField"
	ReasonPodNotFound         Reason = "PodNotFound"
	ReasonPodEnded            Reason = "PodEnded"
	ReasonPodReplaced         Reason = "PodReplaced"
	ReasonHostNotInPool       Reason = "HostNotInPool"
	ReasonNamespaceNotServed  Reason = "NamespaceNotServed"
	ReasonNetworkNotFound     Reason = "NetworkNotFound"
	ReasonFamilyNotServed     Reason = "FamilyNotServed"
	ReasonPoolCordoned        Reason = "PoolCordoned"
	ReasonPoolRebuilding      Reason = "PoolRebuilding"
	ReasonPoolExhausted       Reason = "PoolExhausted"
	ReasonNoFreeBlock         Reason = "NoFreeBlock"
	ReasonHostFull            Reason = "HostFull"
	ReasonQuotaExceeded       Reason = "QuotaExceeded"
	ReasonAddressNotInPool    Reason = "AddressNotInPool"
	ReasonAddressInUse        Reason = "AddressInUse"
	ReasonAddressCooling      Reason = "AddressCooling"
	ReasonAddressNotHeld      Reason = "AddressNotHeld"
	ReasonAddressConflict     Reason = "AddressConflict"
	ReasonTooManyConflicts    Reason = "TooManyConflicts"
	ReasonContainerHoldsOther Reason = "ContainerHoldsOther"
	ReasonContainerDeleted    Reason = "ContainerDeleted"
	ReasonContainerSuperseded Reason = "ContainerSuperseded"
	ReasonReleaseOutdated     Reason = "ReleaseOutdated"
	ReasonInvalidAnnotation   Reason = "InvalidAnnotation"
	ReasonClaimConflict       Reason = "ClaimConflict"
	ReasonWorkloadUnknown     Reason = "WorkloadUnknown"
	ReasonOutcomeUnknown      Reason = "OutcomeUnknown"
	ReasonUnavailable         Reason = "Unavailable"
	ReasonOverloaded          Reason = "Overloaded"
	ReasonTooManyRequests     Reason = "TooManyRequests"
	ReasonForbidden           Reason = "Forbidden"
	ReasonPlainHTTP           Reason = "PlainHTTP"
	ReasonUnauthenticated     Reason = "Unauthenticated"
	ReasonNotPermitted        Reason = "NotPermitted"
	ReasonClaimNotFound       Reason = "ClaimNotFound"
	ReasonClaimFull           Reason = "ClaimFull"
	ReasonNotFound            Reason = "NotFound"
	ReasonInternal            Reason = "Internal"
)

// ReasonInfo documents a reason.
type ReasonInfo struct {
	Reason Reason
	// Code is the envelope's code: 1 the request is wrong, 2 it cannot be done.
	Code int
	// Retry: the same request can succeed later without anybody changing anything.
	Retry   bool
	Meaning string
}

// ReasonTable lists every reason with its code and meaning.
func ReasonTable() []ReasonInfo {
	return []ReasonInfo{
		{ReasonBadRequest, 1, false, "The request is malformed: no JSON, a wrong type, a value out of its bounds."},
		{ReasonMissingField, 1, false, "A required field is missing or empty."},
		{
			ReasonBadAddress, 1, false,
			"An address in the request is not an IP address, or the same family is asked for twice.",
		},
		{ReasonPodNotFound, 2, true, "The API server knows no such pod."},
		{ReasonPodEnded, 2, false, "The pod has ended (Succeeded or Failed)."},
		{ReasonPodReplaced, 2, false, "The pod of that name has another UID than the request."},
		{
			ReasonHostNotInPool,
			2, false,
			"No pool, or not the pool of the address asked for, lists the host, has it in its host subnets or " +
				"matches its node by its host selector.",
		},
		{ReasonNamespaceNotServed, 2, false, "The pools of the host are bound to other namespaces."},
		{ReasonNetworkNotFound, 2, false, "None of the host's pools is part of the network asked for."},
		{
			ReasonFamilyNotServed,
			2, false,
			"The pools that serve the request have no addresses of the family that its ipFamilies name, or no " +
				"network of them has both, as RequireDualStack says.",
		},
		{
			ReasonPoolCordoned,
			2, true, "A pool that the request needs allocates nothing: it is cordoned, being deleted or not usable.",
		},
		{
			ReasonPoolRebuilding,
			2, true, "Leases of the pool were lost; it allocates nothing until its pods have reported their " +
				"addresses, for five minutes at most.",
		},
		{ReasonPoolExhausted, 2, true, "Every address of the pools that fit is taken."},
		{
			ReasonNoFreeBlock,
			2, true, "The blocks of the namespace are full, and the pool has none left that could be given to it.",
		},
		{ReasonHostFull, 2, true, "The host has as many addresses of the pool as its maxPerHost allows."},
		{
			ReasonQuotaExceeded,
			2, true, "The namespace of the pod or of its claim has as many addresses of the pool as its " +
				"quotas or its maxPerNamespace allow. Or it keeps more addresses of a pool of the default chain, " +
				"unused, than the pool has free, and asks for another one to keep. Or the pod has " +
				"addresses on as many interfaces as a pod may have.",
		},
		{ReasonAddressNotInPool, 2, false, "The address asked for is in no pool."},
		{ReasonAddressInUse, 2, true, "The address asked for is held by somebody else, reserved, or a node's own."},
		{
			ReasonAddressCooling,
			2, true, "The address asked for was given up less than its pool's cooldown ago, by somebody else.",
		},
		{ReasonAddressNotHeld, 2, false, "The address is not held by the container or owner that wants to release it."},
		{
			ReasonAddressConflict,
			2, true, "Somebody else in the network answers for the address, which a claim keeps for the container, " +
				"or which was asked for by name: it is not quarantined and stays the container's. Usually an earlier " +
				"instance of the pod still runs on a node that is cut off.",
		},
		{
			ReasonTooManyConflicts,
			2, true, "The host has reported conflicts of five addresses within an hour. This report changed nothing.",
		},
		{ReasonContainerHoldsOther, 2, false, "The container already holds another address than the one asked for."},
		{ReasonContainerDeleted, 2, false, "A DEL for the container, or the owner, came after this ADD began."},
		{ReasonContainerSuperseded, 2, false, "A newer container of the same pod holds its address."},
		{
			ReasonReleaseOutdated,
			2, true, "The startedAt of both requests says that the container, or the owner, asked for its address " +
				"after this DEL began, so it keeps the address. After the clock of a host was set back that is also " +
				"said until the clock has caught up, for five minutes at most.",
		},
		{
			ReasonInvalidAnnotation,
			2, false,
			"An annotation of the pod, its workload or its namespace is malformed, or asks for what such a workload " +
				"cannot have.",
		},
		{
			ReasonWorkloadUnknown,
			2, false,
			"The pod's address is to be kept for its workload, which cannot be found: an owner is gone, or the " +
				"controller may not read it.",
		},
		{ReasonOutcomeUnknown, 2, true,
			"The API server did not say whether it stored the change; asking again settles it."},
		{ReasonUnavailable, 2, true, "The API server does not answer, or this replica is not ready."},
		{
			ReasonOverloaded,
			2, true, "More requests for addresses, writes or lists wait than can be served before the request's time " +
				"is over. Nothing was changed, and another replica would say the same: ask again after Retry-After.",
		},
		{
			ReasonTooManyRequests,
			2, true, "The node, or the host, has sent this replica more than 50 requests a second after 300 at once, " +
				"or unknown senders at its address have. Nothing was changed: ask again after Retry-After. Requests " +
				"that give addresses back are never refused for this reason.",
		},
		{ReasonForbidden, 2, false, "The API server does not allow the controller to do this."},
		{
			ReasonPlainHTTP, 1, false, "The request came by plain HTTP from another machine. With --plain-http it is " +
				"answered if it asks for the host that it comes from.",
		},
		{
			ReasonUnauthenticated, 1, false, "The request does not prove who sent it: it has no token and no client " +
				"certificate, or one that has expired or is for another service.",
		},
		{
			ReasonNotPermitted, 1, false,
			"The sender may not do this: no role allows it, or a node asks for what is not its " +
				"own.",
		},
		{
			ReasonClaimConflict,
			2, true, "Two annotations contradict each other, or an annotation, the request and the claim; or two " +
				"claims are for the pod's workload; or the address that is kept for the pod cannot be given to it " +
				"here: its pool does not serve the host, or an earlier pod still has it.",
		},
		{ReasonClaimNotFound, 2, true, "The claim that the pod's annotation names does not exist."},
		{
			ReasonClaimFull, 2, true,
			"The claim of the pod has as many addresses as it may have, and none is free for the pod.",
		},
		{ReasonNotFound, 2, false, "The object does not exist."},
		{ReasonInternal, 2, true, "Something went wrong that should not; the log has more."},
	}
}

// Refusal is why a request was not done: what, which object, why, and what to do next.
type Refusal struct {
	Reason  Reason
	Message string
	// Hint is the next step, in words or as a command; may be empty.
	Hint string
	// to returns what a reader may know of it; nil if it names no holder.
	to func(Reader) *Refusal
}

// Reader is who reads an answer. It may know who has an address on one of its hosts, or in its namespace.
type Reader struct {
	// Hosts are those that the reader acts for; nil for all.
	Hosts []netip.Addr
	// Namespace is the only one that a reader without hosts may know of; empty for all.
	Namespace string
}

// MayKnow reports whether a reader may know what a holder has. It decides for every answer that names a holder.
func (r Reader) MayKnow(h lease.Holder) bool {
	if r.Hosts != nil {
		return slices.Contains(r.Hosts, h.Host)
	}
	return r.Namespace == "" || r.Namespace == h.Namespace
}

// Naming returns the same refusal, whose message names a holder. Those who may not know of that one are told what
// outside returns: other says in general where such a holder is, such as "another host".
func (r *Refusal) Naming(h lease.Holder, outside func(other string) *Refusal) *Refusal {
	named := *r
	named.to = func(reader Reader) *Refusal {
		switch {
		case reader.MayKnow(h) || failpoint.Broken("reader"):
			return r
		case reader.Hosts != nil:
			return outside("another host")
		default:
			return outside("another namespace")
		}
	}
	return &named
}

// For returns what a reader may know of a refusal.
func (r *Refusal) For(reader Reader) *Refusal {
	if r.to == nil {
		return r
	}
	return r.to(reader)
}

// Error returns the message with the hint behind it.
func (r *Refusal) Error() string {
	if r.Hint == "" {
		return r.Message
	}
	return r.Message + "; hint: " + r.Hint
}

// RefuseFacts makes a Refusal of facts; package explain puts them into words.
func RefuseFacts(reason Reason, facts explain.Facts) *Refusal {
	return &Refusal{Reason: reason, Message: facts.Message(), Hint: facts.Hint()}
}

// RefuseHeld makes a Refusal of facts that name a holder in By.
func RefuseHeld(reason Reason, facts explain.Facts, by lease.Holder) *Refusal {
	return RefuseFacts(reason, facts).Naming(by, func(other string) *Refusal {
		facts.By = other
		return RefuseFacts(reason, facts)
	})
}

// RefuseBecause makes a Refusal of facts and of the refusals that led to it, each of which may name a holder. The next
// step, if the facts have one, is that of the first.
func RefuseBecause(reason Reason, facts explain.Facts, because []*Refusal) *Refusal {
	to := func(reader Reader) *Refusal {
		told := facts
		for i, why := range because {
			why = why.For(reader)
			told.Because = append(told.Because, why.Message)
			if i == 0 && facts.Next != "" {
				told.Next = why.Hint
			}
		}
		return RefuseFacts(reason, told)
	}
	all := to(Reader{})
	all.to = to
	return all
}

// Refuse makes a Refusal without a hint.
func Refuse(reason Reason, format string, args ...any) *Refusal {
	return &Refusal{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// WithHint returns the same refusal with a next step.
func (r *Refusal) WithHint(format string, args ...any) *Refusal {
	hinted := *r
	hinted.Hint = fmt.Sprintf(format, args...)
	return &hinted
}
