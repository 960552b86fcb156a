package view

import (
	"net"
	"net/netip"
	"strings"

	"k8s.io/apimachinery/pkg/fields"

	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// FindKind is a kind of thing by which addresses can be found.
type FindKind struct {
	// Flag limits the search to the kind. It is empty for addresses.
	Flag, Noun, Help string
	// May reports whether a text can name such a thing.
	May func(text string) bool
	// selector returns the field selector for an exact match; nil if address names the object.
	selector func(text string) string
	// address returns the address in a text; invalid if there is none.
	address func(text string) netip.Addr
	// begins reports whether the name in a lease begins with the text; nil if only exact matches count.
	begins func(l lease.Lease, text string) bool
}

// minID is the minimum length of an abbreviated container ID.
const minID = 4

// FindKinds returns all kinds of things by which addresses can be found.
func FindKinds() []FindKind {
	return []FindKind{
		{
			Noun: "address", May: isAddress, address: func(text string) netip.Addr {
				a, _ := ipaddr.ParseAddr(text) // May has seen that it is one
				return a
			},
		},
		{
			Flag: "mac", Noun: "MAC", Help: "the MAC of an address, or of a machine that answers for a quarantined one",
			May: isMAC, address: ipaddr.OfMAC,
			begins: func(l lease.Lease, text string) bool {
				mac, _ := net.ParseMAC(text) // May has seen that it is one
				return l.IsQuarantined() && l.Conflict.MAC == mac.String()
			},
		},
		{
			Flag: "pod", Noun: "pod", Help: "a pod, or NAMESPACE/POD",
			May: func(text string) bool { return !isAddress(text) && strings.Count(text, "/") <= 1 },
			selector: func(text string) string {
				if namespace, pod, both := strings.Cut(text, "/"); both {
					return fields.Set{"status.podNamespace": namespace, "status.podName": pod}.String()
				}
				return equalTo("status.podName", text)
			},
			begins: func(l lease.Lease, text string) bool {
				if namespace, pod, both := strings.Cut(text, "/"); both {
					return l.Namespace == namespace && l.PodName != "" && strings.HasPrefix(l.PodName, pod)
				}
				return strings.HasPrefix(l.PodName, text)
			},
		},
		{
			Flag: "container", Noun: "container", Help: "the ID of a container, or its first 4 digits or more",
			May: func(text string) bool {
				return !strings.Contains(text, "/") && len(text) >= minID &&
					!isAddress(text)
			},
			selector: func(text string) string { return equalTo("status.containerID", text) },
			begins:   func(l lease.Lease, text string) bool { return strings.HasPrefix(l.ContainerID, text) },
		},
		{
			Flag: "host", Noun: "host", Help: "the IP of a host",
			May: isAddress,
			selector: func(text string) string {
				a, _ := ipaddr.ParseAddr(text) // May has seen that it is one
				return equalTo("status.host", a.String())
			},
		},
		{
			Flag: "namespace", Noun: "namespace", Help: "a namespace",
			May:      func(text string) bool { return !strings.Contains(text, "/") && !isAddress(text) },
			selector: func(text string) string { return equalTo("status.podNamespace", text) },
		},
		{
			Flag: "claim", Noun: "claim", Help: "a claim, or NAMESPACE/CLAIM",
			May:      func(text string) bool { return !isAddress(text) && strings.Count(text, "/") <= 1 },
			selector: func(text string) string { return equalTo("status.claim", text) },
			begins: func(l lease.Lease, text string) bool {
				_, name, _ := strings.Cut(l.Claim, "/")
				return l.Claim != "" && (strings.HasPrefix(l.Claim, text) && strings.Contains(text, "/") ||
					strings.HasPrefix(name, text))
			},
		},
		{
			Flag: "for", Noun: "--for name", Help: "a name given to ip allocate --for",
			May:      func(string) bool { return true },
			selector: func(text string) string { return equalTo("status.owner", text) },
			begins:   func(l lease.Lease, text string) bool { return strings.HasPrefix(l.Owner, text) },
		},
	}
}

func equalTo(field, value string) string { return fields.OneTermEqualSelector(field, value).String() }

func isMAC(text string) bool {
	mac, err := net.ParseMAC(text)
	return err == nil && len(mac) == macLength
}

// macLength is the length of a MAC in octets.
const macLength = 6

func isAddress(text string) bool {
	_, err := ipaddr.ParseAddr(text)
	return err == nil
}
