package services_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/bcsnet/bcsnet/pkg/workload"
)

func local(selector string) func(*corev1.Service) {
	return func(o *corev1.Service) {
		o.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
		o.Spec.Selector = map[string]string{"app": selector}
	}
}

// Services of one key have one address, which has one lease. Who holds it passes it on when it leaves.
func TestSharing(t *testing.T) {
	start(t, nil)
	s := newSite(t)
	s.service("tcp", sharing("dns", 53, corev1.ProtocolTCP))
	s.has("tcp", s.prefix+"1")
	s.service("udp", sharing("dns", 53, corev1.ProtocolUDP))
	s.has("udp", s.prefix+"1")
	s.service("web", sharing("", 9153, corev1.ProtocolTCP), annotated("metallb.io/allow-shared-ip", "dns"),
		func(o *corev1.Service) { delete(o.Annotations, workload.SharingAnnotation) }, asking(s.prefix+"1"))
	s.has("web", s.prefix+"1")
	s.held(s.prefix+"1", "tcp")
	if n := s.leases(); n != 1 {
		t.Errorf("%d leases", n)
	}

	// Nobody else gets in: no other key, no port that one has, nobody without a key.
	s.service("rival", sharing("dns", 53, corev1.ProtocolUDP))
	s.refused("rival", "SharingConflict", "Service udp has the address, and port 53/UDP")
	s.service("stranger", sharing("other", 443, corev1.ProtocolTCP), asking(s.prefix+"1"))
	s.refused("stranger", "AddressInUse", s.prefix+"1")
	s.service("keyless", asking(s.prefix+"1"))
	s.refused("keyless", "AddressInUse", s.prefix+"1")
	elsewhere := newSite(t)
	elsewhere.service("tcp", sharing("dns", 54, corev1.ProtocolTCP), asking(s.prefix+"1"), annotated(workload.PoolAnnotation, s.pool))
	elsewhere.refused("tcp", "AddressInUse", s.prefix+"1")

	s.remove("stranger")
	elsewhere.remove("tcp")

	// The holder goes: by deletion, by its type, by its key.
	s.remove("tcp")
	s.gone("tcp")
	s.held(s.prefix+"1", "udp")
	s.settled()
	s.has("udp", s.prefix+"1")
	s.has("web", s.prefix+"1")
	s.away("udp")
	s.untouched("udp")
	s.held(s.prefix+"1", "web")
	s.has("rival", s.prefix+"1") // its port is free now
	// The holder stays, and who shares with it no more moves.
	s.change("web", `{"metadata":{"annotations":{"metallb.io/allow-shared-ip":null}}}`)
	s.has("rival", s.prefix+"2")
	s.has("web", s.prefix+"1")
	s.remove("web")
	s.has("keyless", s.prefix+"1") // it has waited for it
	if n := s.leases(); n != 2 {
		t.Errorf("%d leases", n)
	}
}

// Traffic that stays on its node is shared by Services of the same pods alone.
func TestSharingLocal(t *testing.T) {
	start(t, nil)
	s := newSite(t)
	s.service("a", sharing("k", 80, corev1.ProtocolTCP), local("web"))
	s.has("a", s.prefix+"1")
	s.service("b", sharing("k", 443, corev1.ProtocolTCP), local("web"))
	s.has("b", s.prefix+"1")
	s.service("c", sharing("k", 8080, corev1.ProtocolTCP), local("other"))
	s.refused("c", "SharingConflict", "selector")
	s.service("d", sharing("k", 8081, corev1.ProtocolTCP))
	s.refused("d", "SharingConflict", "selector")
	s.change("c", `{"spec":{"selector":{"app":"web"}}}`)
	s.has("c", s.prefix+"1")
	s.change("c", `{"spec":{"ports":[{"port":80}]}}`) // who changes, loses
	s.refused("c", "SharingConflict", "port 80/TCP")
	s.has("a", s.prefix+"1")
	s.has("b", s.prefix+"1")
}

// Two families are shared each by itself, and one that has a port of its own joins later.
func TestSharingFamilies(t *testing.T) {
	start(t, nil)
	s := newSite(t)
	v6 := s.ipv6()
	both := families(corev1.IPFamilyPolicyRequireDualStack, corev1.IPv4Protocol, corev1.IPv6Protocol)
	s.service("four", sharing("k", 80, corev1.ProtocolTCP))
	s.has("four", s.prefix+"1")
	s.service("both", sharing("k", 443, corev1.ProtocolTCP), both)
	s.has("both", s.prefix+"1", v6+"1")
	s.service("third", sharing("k", 8080, corev1.ProtocolTCP), both)
	s.has("third", s.prefix+"1", v6+"1")
	s.held(v6+"1", "both")
	s.remove("both")
	s.held(v6+"1", "third")
	s.held(s.prefix+"1", "four")
	s.remove("four")
	s.held(s.prefix+"1", "third")
	s.settled()
	s.has("third", s.prefix+"1", v6+"1")
	if n := s.leases(); n != 2 {
		t.Errorf("%d leases", n)
	}
}
