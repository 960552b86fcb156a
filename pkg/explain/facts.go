package explain

import (
	"cmp"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// Facts are what a refusal says, without words. Which fields count depends on the kind.
type Facts struct {
	Kind Kind
	// Who asks.
	Who string
	// Address that is refused, and the pool that has it or is in the way, with its subnet.
	Address netip.Addr
	Pool    string
	Subnet  netip.Prefix
	// Whole is the pool whose bounds, hosts and addresses are those of Pool: its parent where that is a block. Empty
	// for Pool itself.
	Whole string
	// Role of an address that nobody gets, such as "gateway".
	Role string
	// Beside is another address that was asked for; Other is its pool, or the pool that was asked for.
	Beside netip.Addr
	Other  string
	// By names who has the address: a holder, a node.
	By string
	// Host, Namespace and Network of the request, and the claim that is in question.
	Host                      netip.Addr
	Namespace, Network, Claim string
	// Pod that asks, or that has the address still, as namespace/name, and the primary key that the address is kept
	// for.
	Pod, Key string
	// HostSubnets and HostSelector of the pool, in words; Pools are those of the host.
	HostSubnets, HostSelector string
	Pools                     []string
	// Families that the request takes, in words.
	Families string
	// Block means that the pool is a block, which is of one namespace.
	Block bool
	// Own are what the namespace has of its own, where it draws from nothing else.
	Own []string
	// Share is what the host, namespace or claim has of what it may have.
	Share
	// Stop is why the pool allocates nothing.
	Stop Stop
	// In is the time until it may be tried again, Until the moment at which the request gets another address.
	In    time.Duration
	Until time.Time
	// Ranges that the request is restricted to, in words, and how many addresses they are.
	Ranges string
	Size   uint64
	// Because are messages of other refusals, which led to this one, or the state of the pod that is in the way.
	Because []string
	// Next is the hint of the first of those refusals.
	Next string
	// States are those of the pools that were looked at; of more than MaxNamed the rest is counted.
	States []PoolState
	More   int
}

// Message returns what is refused and why.
func (f *Facts) Message() string {
	message, _ := f.Kind.texts()
	return f.fill(message)
}

// Hint returns the next step; it may be empty.
func (f *Facts) Hint() string {
	_, hint := f.Kind.texts()
	return f.fill(hint)
}

// fill replaces each {name} of a text by the fact of that name.
func (f *Facts) fill(text string) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(text, "{")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		name, after, _ := strings.Cut(rest, "}")
		b.WriteString(f.value(name))
		text = after
	}
}

func (f *Facts) value(name string) string {
	switch name {
	case "who":
		return f.Who
	case "address":
		return f.Address.String()
	case "pool":
		return f.Pool
	case "whole":
		return cmp.Or(f.Whole, f.Pool)
	case "subnet":
		return f.Subnet.String()
	case "role":
		return f.Role
	case "beside":
		return f.Beside.String()
	case "other":
		return f.Other
	case "by":
		return f.By
	case "host":
		return f.Host.String()
	case "namespace":
		return f.Namespace
	case "network":
		return f.Network
	case "families":
		return f.Families
	case "claim":
		return f.Claim
	case "pools":
		return FirstFew(f.Pools, "pools")
	case "has":
		return f.Share.has()
	case "held":
		return strconv.Itoa(f.Has)
	case "limit":
		return strconv.Itoa(f.Limit)
	case "why":
		return f.Stop.Why()
	case "in":
		return FormatSpan(f.In)
	case "ranges":
		return f.Ranges
	case "size":
		return strconv.FormatUint(f.Size, 10)
	case "key":
		return f.Key
	case "pod":
		return f.Pod
	case "left":
		return f.In.String()
	case "until":
		return f.Until.Format(time.RFC3339)
	case "because":
		return strings.Join(f.Because, "; ")
	case "states":
		return f.states()
	default:
		return f.phrase(name)
	}
}

// phrase returns a part of a sentence that depends on a fact, or is left out with it.
func (f *Facts) phrase(name string) string {
	switch {
	case name == "claim name":
		return nameOf(f.Claim)
	case name == "pod name":
		return nameOf(f.Pod)
	case name == "cure":
		return f.fill(f.Stop.cure())
	case name == "served" && f.Namespace == "":
		return "all namespaces"
	case name == "served":
		return "namespace " + f.Namespace
	case name == "next" && f.Next != "":
		return f.Next
	case (name == "see" || name == "next") && f.Claim == "":
		return "see: bcsnetctl pool list"
	case name == "see", name == "next":
		return "see: bcsnetctl claim describe " + f.Claim
	case name == "taken" && f.By != "":
		return "held by " + f.By
	case name == "taken" && f.Claim != "":
		return "kept for claim " + f.Claim
	case name == "taken":
		return "reserved"
	case name == "by whom" && f.By != "":
		return " by " + f.By
	case name == "on host" && f.Host.IsValid():
		return " on host " + f.Host.String()
	case name == "after" && f.By != "":
		return " after " + f.By
	case name == "nor subnets" && f.HostSubnets != "":
		return ", nor is it in its host subnets " + f.HostSubnets
	case name == "bind" && (f.Namespace == "" || f.Block):
		return "see: bcsnetctl pool describe " + f.Pool
	case name == "bind" && len(f.Own) > 0:
		return "see why: bcsnetctl explain namespace " + f.Namespace +
			"; to let the host draw from its own pools: " +
			"bcsnetctl pool add-host " + f.Own[0] + " " + f.Host.String()
	case name == "bind":
		return "see why: bcsnetctl explain namespace " + f.Namespace +
			"; to see the effect of binding the pool to it: " +
			"bcsnetctl pool bind " + f.Pool + " --namespace " + f.Namespace + " --dry-run=server"
	case name == "only own" && len(f.Own) > 0:
		return "; it draws only from its own pools: " + FirstFew(f.Own, "pools")
	case name == "own" && len(f.Own) > 0:
		return "; namespace " + f.Namespace + " draws only from its own pools"
	case name == "nor selector" && f.HostSelector != "":
		return ", nor does its host selector " + f.HostSelector + " match the host's node"
	case name == "coming" && f.Coming > 0:
		return fmt.Sprintf(", %d more are for its pods on their way", f.Coming)
	case name == "gone" && f.gone():
		return "see the addresses of pods that are gone: bcsnetctl doctor --only leaks; "
	case name == "reasons" && len(f.Because) > 0:
		return ": " + strings.Join(f.Because, "; ")
	}
	return ""
}

// nameOf returns the name of an object that is called namespace/name.
func nameOf(object string) string { return object[strings.IndexByte(object, '/')+1:] }
