package doctor_test

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/doctor"
	"github.com/bcsnet/bcsnet/pkg/gone"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// checkCase is a change of the healthy cluster, and all that is found then.
type checkCase struct {
	change func(*doctor.Snapshot)
	want   []string
}

func TestChecks(t *testing.T) {
	for name, test := range cases() {
		t.Run(name, func(t *testing.T) {
			s := healthy()
			test.change(s)
			if diff := cmp.Diff(test.want, found(s)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// inRack returns a node with a label; bySelector makes a pool one for the nodes with it alone.
func inRack(name, rack, internal string) doctor.Node {
	a := []netip.Addr{addr(internal)}
	return doctor.Node{Name: name, Addrs: a, Internal: a, Labels: map[string]string{"rack": rack}, Ready: true}
}

// give gives a node addresses by its annotation.
func give(n *doctor.Node, addrs ...string) {
	for _, a := range addrs {
		n.Addrs, n.Further = append(n.Addrs, addr(a)), append(n.Further, addr(a))
	}
}

func bySelector(rack string) func(*v1.BCSNetPool) {
	return func(p *v1.BCSNetPool) {
		p.Spec.Hosts = nil
		p.Spec.HostSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"rack": rack}}
	}
}

func cases() map[string]checkCase {
	all := map[string]checkCase{}
	for _, some := range []map[string]checkCase{
		installCases(), poolCases(), groupCases(), leakCases(), addressCases(), claimCases(), hostCases(),
	} {
		for name, c := range some {
			if _, twice := all[name]; twice {
				panic("two cases are called " + name)
			}
			all[name] = c
		}
	}
	return all
}

func installCases() map[string]checkCase {
	return map[string]checkCase{
		"a CRD is missing": {func(s *doctor.Snapshot) { s.CRDs[0].Missing = true },
			[]string{"crds-missing crd/bcsnetpools: the cluster does not have it"}},
		"a CRD is being deleted": {func(s *doctor.Snapshot) { s.CRDs[0].NotServed = "it goes" },
			[]string{"crds-not-served crd/bcsnetpools: it goes"}},
		"a CRD differs": {func(s *doctor.Snapshot) { s.CRDs[0].Difference = "scope differs" },
			[]string{"crds-outdated crd/bcsnetpools: it is not of this release: scope differs"}},
		"no controller at all": {func(s *doctor.Snapshot) { s.Controller = doctor.Controller{} },
			[]string{"no-controller lease/bcsnet-system/bcsnet-controller: no pod of the controller in namespace " +
				"bcsnet-system, and nobody leads"}},
		"its pods are not ready": {func(s *doctor.Snapshot) { s.Controller = doctor.Controller{Pods: 2} },
			[]string{"no-controller lease/bcsnet-system/bcsnet-controller: 2 pods of the controller in namespace " +
				"bcsnet-system, none ready"}},
		"a leader that was": {func(s *doctor.Snapshot) {
			s.Controller.Pods, s.Controller.Ready,
				s.Controller.Renewed = 0, 0, old
		},
			[]string{"no-controller lease/bcsnet-system/bcsnet-controller: no pod of the controller in namespace " +
				"bcsnet-system, and a, the last leader, was last heard of 2d ago"}},
		"a leader outside the cluster": {func(s *doctor.Snapshot) { s.Controller.Pods, s.Controller.Ready = 0, 0 },
			nil},
		"nobody leads": {func(s *doctor.Snapshot) { s.Controller.Leader = "" },
			[]string{"no-leader lease/bcsnet-system/bcsnet-controller: 2 controllers are ready, but nobody leads"}},
		"the leader hangs": {func(s *doctor.Snapshot) { s.Controller.Renewed = old },
			[]string{"leader-stale lease/bcsnet-system/bcsnet-controller: a leads by the Lease, but was last heard " +
				"of 2d ago"}},
		"machines call by plain HTTP": {func(s *doctor.Snapshot) {
			s.PlainCallers = doctor.PlainCallers{Since: old, Kept: now.Add(-time.Hour), Hosts: map[netip.Addr]time.Time{
				addr("10.0.0.12"): now.Add(-3 * time.Minute), addr("10.0.0.11"): now.Add(-23 * time.Hour),
				addr("10.0.0.13"): old,
			}}
		}, []string{
			"plain-http-callers host/10.0.0.11: it called by plain HTTP 23h ago",
			"plain-http-callers host/10.0.0.12: it called by plain HTTP 3m ago",
		}},
		"nobody calls by plain HTTP": {func(s *doctor.Snapshot) {
			s.PlainCallers = doctor.PlainCallers{Since: old, Kept: now.Add(-time.Hour)}
		}, []string{"plain-http-unused deployment/bcsnet-system/bcsnet-controller: no other machine has called by " +
			"plain HTTP for 24 hours"}},
		"plain HTTP is answered since lately": {func(s *doctor.Snapshot) {
			s.PlainCallers = doctor.PlainCallers{Since: now.Add(-23 * time.Hour), Kept: now}
		}, nil},
		"plain HTTP is answered no more": {func(s *doctor.Snapshot) {
			s.PlainCallers = doctor.PlainCallers{
				Since: old, Kept: now.Add(-4 * time.Hour),
				Hosts: map[netip.Addr]time.Time{addr("10.0.0.12"): now.Add(-5 * time.Hour)},
			}
		}, nil},
		"the leader is a little late": {func(s *doctor.Snapshot) { s.Controller.Renewed = now.Add(-25 * time.Second) },
			nil},
	}
}

func poolCases() map[string]checkCase {
	deleted := func(since time.Duration) func(*v1.BCSNetPool) {
		return func(p *v1.BCSNetPool) { p.DeletionTimestamp = &metav1.Time{Time: now.Add(-since)} }
	}
	pools := func(pools ...doctor.Pool) func(*doctor.Snapshot) {
		return func(s *doctor.Snapshot) { s.Pools = pools }
	}
	blue := pool("blue", "10.1.0.20-10.1.0.29")
	noLeases := func(pools ...doctor.Pool) func(*doctor.Snapshot) {
		return func(s *doctor.Snapshot) { s.Pools, s.Leases, s.Pods = pools, nil, nil }
	}
	blocks := pool("net", "10.1.0.128-10.1.0.191", func(p *v1.BCSNetPool) {
		p.Spec.BlockSize, p.Spec.AutoAssign = 28, true
	})
	bound := pool("shop", "10.1.0.64-10.1.0.67", func(p *v1.BCSNetPool) {
		p.Spec.Namespaces, p.Spec.Hosts = []string{"default"}, []string{"10.0.0.12"}
	})
	other := inRack("node-2", "1", "10.0.0.12")
	return map[string]checkCase{
		"a pool that gives blocks on all hosts of another": {pools(blue, blocks),
			[]string{"pool-shadowed pool/blue: it serves no namespace: on each of its hosts every namespace gets blocks of " +
				"net automatically"}},
		"a pool that gives blocks on some hosts of another": {pools(pool("blue", "10.1.0.20-10.1.0.29",
			func(p *v1.BCSNetPool) {
				p.Spec.Hosts, p.Spec.HostSubnets = nil, []string{"10.0.0.0/24"}
			}), blocks), nil},
		"a namespace with addresses where nothing serves it": {func(s *doctor.Snapshot) {
			s.Pools, s.Nodes = []doctor.Pool{blue, bound}, append(s.Nodes, other)
		}, []string{"namespace-cut-off namespace/default: it has 1 address on host 10.0.0.11, and no pool serves it " +
			"there"}},
		"a namespace that a selector may match": {func(s *doctor.Snapshot) {
			s.Pools, s.Nodes = []doctor.Pool{blue, bound, pool("gold", "10.1.0.80-10.1.0.83", func(p *v1.BCSNetPool) {
				p.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "gold"}}
			})}, append(s.Nodes, other)
		}, nil},
		"an invalid pool": {pools(pool("blue", "10.2.0.5")),
			[]string{`pool-invalid pool/blue: availableIPs[0]: "10.2.0.5" is not in subnet 10.1.0.0/24`}},
		"a pool without addresses": {noLeases(pool("blue", "10.1.0.1", ready(metav1.ConditionFalse,
			v1.ReasonNoAddresses, "none"))),
			[]string{"pool-not-ready pool/blue: it has no address to allocate"}},
		"a pool without hosts": {pools(pool("blue", "10.1.0.20-10.1.0.29",
			func(p *v1.BCSNetPool) { p.Spec.Hosts = nil })), []string{
			"pool-not-ready pool/blue: no host may draw from it",
			"host-in-no-pool host/10.0.0.11: 2 addresses in use on it, but no pool lists it",
			"node-in-no-pool node/node-1: no pool lists 10.0.0.11",
		}},
		"a pool of host subnets alone": {pools(pool("blue", "10.1.0.20-10.1.0.29", func(p *v1.BCSNetPool) {
			p.Spec.Hosts, p.Spec.HostSubnets = nil, []string{"10.0.0.0/24"}
		})), nil},
		"a pool that nobody has looked at": {pools(pool("blue", "10.1.0.20-10.1.0.29",
			func(p *v1.BCSNetPool) { p.Status.ObservedGeneration = 0 })),
			[]string{"pool-not-ready pool/blue: no controller has looked at it"}},
		"a new pool": {pools(pool("blue", "10.1.0.20-10.1.0.29", func(p *v1.BCSNetPool) {
			p.Status.ObservedGeneration, p.CreationTimestamp.Time = 0, lately
		})), nil},
		"objects that cannot be written": {pools(pool("blue", "10.1.0.20-10.1.0.29", ready(metav1.ConditionFalse,
			v1.ReasonObjectsFailing, "3 left: forbidden"))),
			[]string{"pool-not-ready pool/blue: 3 left: forbidden"}},
		"a cordoned pool": {pools(pool("blue", "10.1.0.20-10.1.0.29", ready(metav1.ConditionFalse, v1.ReasonCordoned,
			"cordoned"))), nil},

		"a full pool": {pools(pool("blue", "10.1.0.20-10.1.0.22")),
			[]string{"pool-exhausted pool/blue: all of its 3 addresses are taken"}},
		"a full pool whose holder is gone": {func(s *doctor.Snapshot) {
			pools(pool("blue", "10.1.0.20-10.1.0.22"))(s)
			s.Pods = s.Pods[1:]
		}, []string{
			"pool-exhausted pool/blue: all of its 3 addresses are taken; 1 is held for pods that are gone",
			"leak-pod-gone ip/10.1.0.20: pod default/web-0 does not exist; held for 2d on 10.0.0.11",
		}},
		"a full pool whose holders cannot be read": {func(s *doctor.Snapshot) {
			pools(pool("blue", "10.1.0.20-10.1.0.22"))(s)
			s.Missing[doctor.PartPods], s.Pods = errForbidden, nil
		}, []string{"pool-exhausted pool/blue: all of its 3 addresses are taken"}},
		"a full pool that is cordoned": {pools(pool("blue", "10.1.0.20-10.1.0.22",
			func(p *v1.BCSNetPool) { p.Spec.Cordoned = true })), nil},
		"a pool filled by a node": {func(s *doctor.Snapshot) {
			s.Pools = []doctor.Pool{pool("blue", "10.1.0.20-10.1.0.23")}
			s.Nodes[0].Addrs = append(s.Nodes[0].Addrs, addr("10.1.0.23"))
		}, []string{
			"pool-exhausted pool/blue: all of its 3 addresses are taken",
			"node-address-in-pool ip/10.1.0.23: node node-1 has it, pool blue, too",
		}},
		"a pool that is nearly full": {func(s *doctor.Snapshot) {
			for _, a := range []string{"10.1.0.23", "10.1.0.24", "10.1.0.25", "10.1.0.26", "10.1.0.27", "10.1.0.28"} {
				s.Leases = append(s.Leases, leased(a, "", func(l *lease.Lease) { l.Owner = "vm-" + a }))
			}
		}, []string{"pool-near-exhaustion pool/blue: 9 of its 10 addresses are in use or reserved, 1 is free"}},

		"a namespace that keeps more than is free": {func(s *doctor.Snapshot) {
			for _, a := range []string{"10.1.0.24", "10.1.0.25", "10.1.0.26", "10.1.0.27"} {
				s.Leases = append(s.Leases, leased(a, "", func(l *lease.Lease) {
					l.State, l.Holder = lease.Reserved, lease.Holder{Namespace: "tenant"}
					l.Retention = lease.Retention{Claim: "default/web", Fixed: true}
				}))
			}
		}, []string{"namespace-keeps-too-many pool/blue: namespace tenant keeps 4 of its addresses that no pod uses, " +
			"and 3 are free"}},

		"a pool that is full as long as some of it cools": {pools(pool("blue", "10.1.0.20-10.1.0.24",
			func(p *v1.BCSNetPool) { p.Status.Cooling = 2 })),
			[]string{"pool-exhausted pool/blue: all of its 5 addresses are taken, 2 of them by the cooldown"}},
		"a pool that is nearly full as long as some of it cools": {pools(pool("blue", "10.1.0.20-10.1.0.29",
			func(p *v1.BCSNetPool) { p.Status.Cooling = 6 })),
			[]string{"pool-near-exhaustion pool/blue: 9 of its 10 addresses are in use, reserved or cooling, 1 is " +
				"free"}},
		"a pool whose cooling addresses have been taken since": {pools(pool("blue", "10.1.0.20-10.1.0.22",
			func(p *v1.BCSNetPool) { p.Status.Cooling = 3 })),
			[]string{"pool-exhausted pool/blue: all of its 3 addresses are taken"}},

		"pools that overlap": {pools(blue, pool("red", "10.1.0.28-10.1.0.40",
			func(p *v1.BCSNetPool) { p.CreationTimestamp.Time = lately })),
			[]string{"pool-overlap pool/blue: 10.1.0.28-10.1.0.29 are also in pool red"}},
		"three that overlap": {pools(pool("c", "10.1.0.20-10.1.0.40"), pool("a", "10.1.0.30"), pool("b",
			"10.1.0.20-10.1.0.25")), []string{
			"pool-overlap pool/a: 10.1.0.30 is also in pool c",
			"pool-overlap pool/b: 10.1.0.20-10.1.0.25 are also in pool c",
			"lease-without-pool ip/10.1.0.20: there is no pool blue; default/web-0, held for 2d on 10.0.0.11",
			"lease-without-pool ip/10.1.0.21: there is no pool blue; vm-1, held for 2d on 10.0.0.11",
			"lease-without-pool ip/10.1.0.22: there is no pool blue; reserved",
		}},
		"neighbours": {pools(blue, pool("red", "10.1.0.30-10.1.0.40")), nil},
		"a pool in the Service network": {func(s *doctor.Snapshot) { s.Services = []netip.Prefix{netip.MustParsePrefix("10.1.0.28/30")} },
			[]string{"pool-overlaps-service-network pool/blue: 10.1.0.28-10.1.0.29 are in the network 10.1.0.28/30 " +
				"of the cluster's Services"}},
		"pods of a pool that has changed": {func(s *doctor.Snapshot) {
			was := s.Pools[0].Settings()
			was.VLAN, was.DNS = 7, &lease.DNS{Nameservers: []string{"10.0.0.2"}}
			s.Leases[0].Given = lease.NewGiven(was)
		}, []string{"lease-outdated pool/blue: 1 lease has other settings than the pool has now: vlan (1), " +
			"dns (1)"}},
		"pods of a pool that has not changed": {func(s *doctor.Snapshot) {
			s.Leases[0].Given = lease.NewGiven(s.Pools[0].Settings())
		}, nil},
		"a pod whose host named its gateway": {func(s *doctor.Snapshot) {
			was := s.Pools[0].Settings()
			was.Gateway, was.GatewayFrom = addr("10.1.0.9"), lease.FromHost
			s.Leases[0].Given = lease.NewGiven(was)
		}, nil},
		"a pool in the nodes' subnet": {func(s *doctor.Snapshot) {
			s.Nodes[0].Addrs = append(s.Nodes[0].Addrs,
				addr("10.1.0.9"))
		}, nil},
		"a node's address that a pod holds": {func(s *doctor.Snapshot) {
			s.Nodes[0].Addrs = append(s.Nodes[0].Addrs,
				addr("10.1.0.20"))
		},
			[]string{"node-address-held ip/10.1.0.20: node node-1 has it, and so has default/web-0"}},
		"a node's address that is reserved": {func(s *doctor.Snapshot) {
			s.Nodes[0].Addrs = append(s.Nodes[0].Addrs,
				addr("10.1.0.22"))
		},
			[]string{"node-address-in-pool ip/10.1.0.22: node node-1 has it, pool blue, too"}},

		"a pool that waits for its addresses": {pools(pool("blue", "10.1.0.20-10.1.0.29", deleted(time.Hour))),
			[]string{"stuck-deletion pool/blue: deleted 60m ago; it goes when 2 addresses in use are released: on " +
				"10.0.0.11"}},
		"a pool that a claim keeps": {func(s *doctor.Snapshot) {
			pools(pool("blue", "10.1.0.20-10.1.0.29", deleted(time.Hour)))(s)
			s.Pods = nil
			s.Leases = []lease.Lease{{Addr: addr("10.1.0.29"), Params: lease.Params{Pool: "blue"},
				State:     lease.Reserved,
				Updated:   old,
				Retention: lease.Retention{Claim: "default/web", Fixed: true}}}
		}, []string{"stuck-deletion pool/blue: deleted 60m ago; it goes when claims have given up 1 address: " +
			"default/web"}},
		"a pool that nobody removes": {noLeases(pool("blue", "10.1.0.20-10.1.0.29", deleted(time.Hour))),
			[]string{"stuck-deletion pool/blue: deleted 60m ago; nothing is in use: no controller removes " +
				"it"}},
		"a pool that was just deleted": {pools(pool("blue", "10.1.0.20-10.1.0.29", deleted(time.Minute))), nil},
		"an address deleted by hand": {func(s *doctor.Snapshot) { s.Leases[0].Deleting = true },
			[]string{"stuck-deletion ip/10.1.0.20: its object was deleted by hand and goes when it is released; " +
				"default/web-0, held for 2d on 10.0.0.11"}},
		"an address that somebody else keeps": {func(s *doctor.Snapshot) {
			s.Leases = append(s.Leases, lease.Lease{
				Addr: addr("10.1.0.29"), Params: lease.Params{Pool: "blue"}, Deleting: true, Updated: old,
			})
		}, []string{"stuck-deletion ip/10.1.0.29: its object was deleted and nobody holds it, but it has a finalizer " +
			"that is not ours"}},
		"an address that was just deleted": {func(s *doctor.Snapshot) {
			s.Leases = append(s.Leases, lease.Lease{
				Addr: addr("10.1.0.29"), Params: lease.Params{Pool: "blue"}, Deleting: true, Updated: lately,
			})
		}, nil},
	}
}

func leakCases() map[string]checkCase {
	const since = "; held for 2d on 10.0.0.11"
	noPod := "leak-pod-gone ip/10.1.0.25: pod default/gone-0 does not exist" + since
	with := func(change ...func(*lease.Lease)) func(*doctor.Snapshot) {
		return func(s *doctor.Snapshot) { s.Leases = append(s.Leases, leased("10.1.0.25", "gone-0", change...)) }
	}
	return map[string]checkCase{
		"a pod that is gone":            {with(), []string{noPod}},
		"one that is gone, without UID": {with(func(l *lease.Lease) { l.PodUID = "" }), []string{noPod}},
		"one that has just taken it":    {with(func(l *lease.Lease) { l.Updated = lately }), nil},
		"one of unknown age": {with(func(l *lease.Lease) { l.Updated = time.Time{} }),
			[]string{"leak-pod-gone ip/10.1.0.25: pod default/gone-0 does not exist; held on 10.0.0.11"}},
		"a container of an unknown pod": {with(func(l *lease.Lease) { l.PodName, l.Namespace, l.PodUID = "", "", "" }),
			nil},
		"an owner that is no pod":   {with(func(l *lease.Lease) { l.Owner = "vm-2" }), nil},
		"an address kept for a pod": {with(func(l *lease.Lease) { l.State = lease.Reserved }), nil},
		"a pod of that name elsewhere": {with(func(l *lease.Lease) { l.Namespace, l.PodName = "other", "web-0" }),
			[]string{"leak-pod-gone ip/10.1.0.25: pod other/web-0 does not exist" + since}},
		"a pod that is gone, host unknown": {with(func(l *lease.Lease) { l.Host = netip.Addr{} }),
			[]string{"leak-pod-gone ip/10.1.0.25: pod default/gone-0 does not exist; held for 2d on a host that is " +
				"not known"}},
		"a pod that is gone with its node": {func(s *doctor.Snapshot) {
			with()(s)
			s.Nodes[0].Ready = false
		}, []string{noPod + ", which is not a Ready node: its container may still run"}},
		"a pod that is gone, on a further address of its node": {func(s *doctor.Snapshot) {
			with(func(l *lease.Lease) { l.Host = addr("10.8.0.11") })(s)
			give(&s.Nodes[0], "10.8.0.11")
			s.Pools[0] = pool("blue", "10.1.0.20-10.1.0.29",
				func(p *v1.BCSNetPool) { p.Spec.Hosts = []string{"10.0.0.11", "10.8.0.11"} })
		}, []string{"leak-pod-gone ip/10.1.0.25: pod default/gone-0 does not exist; held for 2d on 10.8.0.11"}},
		"a pod that is gone, on a host of two nodes, one of them not ready": {func(s *doctor.Snapshot) {
			with()(s)
			s.Nodes = append(s.Nodes, doctor.Node{Name: "node-0"})
			give(&s.Nodes[1], "10.0.0.11")
		}, []string{noPod + ", which 2 nodes claim, not all of them ready: its container may still run",
			"duplicate-host host/10.0.0.11: it is the IP of node node-1, and the annotation of node node-0 names it"}},
		"a pod that is gone, its machine is off": {func(s *doctor.Snapshot) {
			with()(s)
			s.Nodes[0].Ready, s.Nodes[0].OutOfService, s.Nodes[0].Since = false, true, now.Add(-time.Hour)
		}, []string{noPod}},
		"a pod that is being deleted, its machine is off": {func(s *doctor.Snapshot) {
			s.Pods[0].Deleting = true
			s.Nodes[0].Ready, s.Nodes[0].OutOfService, s.Nodes[0].Since = false, true, now.Add(-time.Hour)
		}, []string{"leak-pod-gone ip/10.1.0.20: pod default/web-0 is being deleted, and host 10.0.0.11 is out of " +
			"service" + since}},
		"a pod that has ended, its node is not ready": {func(s *doctor.Snapshot) {
			s.Pods[0].Ended, s.Pods[0].EndedAt, s.Nodes[0].Ready = true, old, false
		}, []string{"leak-pod-ended ip/10.1.0.20: pod default/web-0 has ended" + since +
			", which is not a Ready node: its container may still run"}},
		"a pod whose containers have all ended, its node is not ready": {func(s *doctor.Snapshot) {
			s.Pods[0].Ended, s.Pods[0].Over, s.Pods[0].EndedAt, s.Nodes[0].Ready = true, true, old, false
		}, []string{"leak-pod-ended ip/10.1.0.20: pod default/web-0 has ended" + since}},
		"a pod that is gone, nodes unknown": {func(s *doctor.Snapshot) {
			with()(s)
			s.Missing[doctor.PartNodes], s.Nodes = errForbidden, nil
		}, []string{noPod}},

		"a pod that has ended": {func(s *doctor.Snapshot) { s.Pods[0].Ended, s.Pods[0].EndedAt = true, old },
			[]string{"leak-pod-ended ip/10.1.0.20: pod default/web-0 has ended" + since}},
		"a pod that has ended some time": {func(s *doctor.Snapshot) { s.Pods[0].Ended = true },
			[]string{"leak-pod-ended ip/10.1.0.20: pod default/web-0 has ended" + since}},
		"a pod that has just ended": {func(s *doctor.Snapshot) { s.Pods[0].Ended, s.Pods[0].EndedAt = true, lately },
			nil},

		"a pod made anew": {func(s *doctor.Snapshot) {
			s.Pods[0].UID, s.Pods[0].Addrs, s.Pods[0].Created = "another", nil, old.Add(time.Hour)
		},
			[]string{"leak-pod-replaced ip/10.1.0.20: pod default/web-0 is another one now than the holder" + since}},
		"a pod made anew that has another address": {func(s *doctor.Snapshot) {
			s.Pods[0].UID,
				s.Pods[0].Addrs = "another", pod("", "10.9.0.1").Addrs
		},
			[]string{"leak-pod-replaced ip/10.1.0.20: pod default/web-0 is another one now than the holder" + since}},
		"the same, lately: that may be the address of its earlier sandbox": {func(s *doctor.Snapshot) {
			s.Pods[0].UID, s.Pods[0].Addrs, s.Pods[0].Created = "another", pod("", "10.9.0.1").Addrs,
				now.Add(-3*time.Minute)
			s.Leases[0].Updated = s.Pods[0].Created
		}, nil},
		"a pod made anew that has ended": {func(s *doctor.Snapshot) {
			s.Pods[0].UID, s.Pods[0].Ended, s.Pods[0].Created = "another", true, old
		}, []string{"leak-pod-ended ip/10.1.0.20: pod default/web-0 has ended" + since}},
		"a pod made anew that has the address": {func(s *doctor.Snapshot) {
			s.Pods[0].UID,
				s.Pods[0].Created = "another", old.Add(time.Hour)
		},
			[]string{"pod-without-lease pod/default/web-0: it has 10.1.0.20 of pool blue, which default/web-0 holds"}},
		"a lease bound with an old UID, before the sandbox is up": {func(s *doctor.Snapshot) {
			s.Pods[0].UID, s.Pods[0].Addrs, s.Pods[0].Created = "another", nil, old.Add(-gone.Skew)
		}, nil},
		"the same, and the request named the old UID": {func(s *doctor.Snapshot) {
			s.Pods[0].UID, s.Pods[0].Addrs, s.Pods[0].Created = "another", nil, old.Add(-gone.Skew)
			s.Leases[0].UIDNamed = true
		}, []string{"leak-pod-replaced ip/10.1.0.20: pod default/web-0 is another one now than the holder" + since}},
		"the same, and a later container of the pod has another address": {func(s *doctor.Snapshot) {
			s.Pods[0].UID, s.Pods[0].Addrs, s.Pods[0].Created = "another", nil, old.Add(-gone.Skew)
			later := s.Leases[0]
			later.Addr, later.PodUID, later.ContainerID, later.StartedAt = netip.MustParseAddr("10.1.0.21"), "another",
				"later", old.Add(time.Second)
			s.Leases = append(s.Leases, later)
		}, []string{"leak-pod-replaced ip/10.1.0.20: pod default/web-0 is another one now than the holder" + since}},
		"the same, and that was bound with an old UID, too": {func(s *doctor.Snapshot) {
			s.Pods[0].UID, s.Pods[0].Addrs, s.Pods[0].Created = "another", nil, old.Add(-gone.Skew)
			later := s.Leases[0]
			later.Addr, later.PodUID, later.ContainerID, later.StartedAt = netip.MustParseAddr("10.1.0.21"), "between",
				"later", old.Add(time.Second)
			elsewhere := later
			elsewhere.Addr, elsewhere.Host, elsewhere.StartedAt = netip.MustParseAddr("10.1.0.22"),
				netip.MustParseAddr("10.0.0.12"), old.Add(time.Hour)
			s.Leases = append(s.Leases, later, elsewhere) // the clock of another host says nothing
		}, []string{"leak-pod-replaced ip/10.1.0.20: pod default/web-0 is another one now than the holder" + since,
			"host-gone host/10.0.0.12: no node has this IP; 1 address in use on it"}},
		"a pod made anew, lease without UID": {func(s *doctor.Snapshot) {
			s.Pods[0].UID, s.Leases[0].PodUID = "another",
				""
		}, nil},

		"a pod with another address": {func(s *doctor.Snapshot) {
			s.Pods[0].Addrs = pod("", "10.9.0.1",
				"2001:db8::1").Addrs
		},
			[]string{"leak-pod-other-address ip/10.1.0.20: pod default/web-0 has 10.9.0.1, 2001:db8::1 instead" +
				since}},
		"a pod with both": {func(s *doctor.Snapshot) {
			s.Pods[0].Addrs = pod("", "10.9.0.1",
				"10.1.0.20").Addrs
		}, nil},
		"a pod without a status": {func(s *doctor.Snapshot) { s.Pods[0].Addrs = nil }, nil},
		"a pod that is being deleted": {func(s *doctor.Snapshot) {
			s.Pods[0].Addrs, s.Pods[0].Deleting = pod("",
				"10.9.0.1").Addrs, true
		}, nil},
		"a second interface": {func(s *doctor.Snapshot) {
			s.Pods[0].Addrs, s.Leases[0].IfName = pod("",
				"10.9.0.1").Addrs, "net1"
		}, nil},
		"a second interface as reported": {func(s *doctor.Snapshot) {
			s.Pods[0].Addrs, s.Leases[0].IfName, s.Pods[0].Networks = pod("", "10.9.0.1").Addrs, "net1", true
		}, []string{"leak-pod-other-address ip/10.1.0.20: pod default/web-0 has 10.9.0.1 instead" + since}},
	}
}

// quarantined is an address of pool blue for which a MAC answered so many minutes ago.
func quarantined(a, mac string, minutes int) lease.Lease {
	at := now.Add(-time.Duration(minutes) * time.Minute)
	return lease.Lease{
		Addr: addr(a), State: lease.Reserved, Params: lease.Params{Pool: "blue", Bits: 24}, Updated: at,
		HeldFinalizer: true,
		Conflict: &lease.Conflict{
			MAC: mac, Host: addr("10.0.0.11"), ContainerID: "c", At: at, Outcome: lease.ConflictQuarantined,
			Until: at.Add(time.Hour),
		},
	}
}

func addressCases() map[string]checkCase {
	with := func(change func(*doctor.Snapshot)) func(*doctor.Snapshot) {
		return func(s *doctor.Snapshot) {
			s.Pods = append(s.Pods, pod("stray", "10.1.0.25"))
			change(s)
		}
	}
	stray := func(s *doctor.Snapshot) int { return len(s.Pods) - 1 }
	const free = "pod-without-lease pod/default/stray: it has 10.1.0.25 of pool blue, which is free by its record"
	return map[string]checkCase{
		"a pod without a lease":     {with(func(*doctor.Snapshot) {}), []string{free}},
		"on the host's network":     {with(func(s *doctor.Snapshot) { s.Pods[stray(s)].HostNetwork = true }), nil},
		"one that has ended":        {with(func(s *doctor.Snapshot) { s.Pods[stray(s)].Ended = true }), nil},
		"one that ends":             {with(func(s *doctor.Snapshot) { s.Pods[stray(s)].Deleting = true }), nil},
		"one that has just started": {with(func(s *doctor.Snapshot) { s.Pods[stray(s)].Started = lately }), nil},
		"an address of no pool": {with(func(s *doctor.Snapshot) {
			s.Pods[stray(s)].Addrs = pod("",
				"10.1.0.30").Addrs
		}), nil},
		"given up long ago": {with(func(s *doctor.Snapshot) {
			s.Leases = append(s.Leases, lease.Lease{Addr: addr("10.1.0.25"), Updated: old})
		}), []string{free}},
		"emptied, with a holder": {func(s *doctor.Snapshot) {
			s.Leases = append(s.Leases, leased("10.1.0.26", "web-1",
				func(l *lease.Lease) { l.State = lease.Available }))
		}, []string{"lease-emptied ip/10.1.0.26: it is free by its state, and its record still names default/web-1"}},
		"emptied, with a claim": {func(s *doctor.Snapshot) {
			s.Leases = append(s.Leases, lease.Lease{Addr: addr("10.1.0.26"),
				Retention: lease.Retention{Claim: "default/web"}})
		}, []string{"lease-emptied ip/10.1.0.26: it is free by its state, and its record still names claim " +
			"default/web"}},
		"emptied, with the finalizer": {func(s *doctor.Snapshot) {
			s.Leases = append(s.Leases, lease.Lease{Addr: addr("10.1.0.26"), HeldFinalizer: true})
		}, []string{"lease-emptied ip/10.1.0.26: it is free by its record, and still has the finalizer of one that " +
			"is in use"}},
		"released while its object is deleted": {func(s *doctor.Snapshot) {
			s.Leases = append(s.Leases, lease.Lease{
				Addr: addr("10.1.0.26"), HeldFinalizer: true, Deleting: true, Updated: lately,
			})
		}, nil},
		"given up just now": {with(func(s *doctor.Snapshot) {
			s.Leases = append(s.Leases, lease.Lease{Addr: addr("10.1.0.25"), Updated: lately})
		}), nil},
		"an address that is reserved": {with(func(s *doctor.Snapshot) {
			s.Pods[stray(s)].Addrs = pod("",
				"10.1.0.22").Addrs
		}),
			[]string{"pod-without-lease pod/default/stray: it has 10.1.0.22 of pool blue, which is reserved"}},
		"an address that another pod holds": {with(func(s *doctor.Snapshot) {
			s.Pods[stray(s)].Addrs = pod("",
				"10.1.0.20").Addrs
		}),
			[]string{"pod-without-lease pod/default/stray: it has 10.1.0.20 of pool blue, which default/web-0 holds"}},
		"an address that an owner holds": {with(func(s *doctor.Snapshot) {
			s.Pods[stray(s)].Addrs = pod("",
				"10.1.0.21").Addrs
		}),
			[]string{"pod-without-lease pod/default/stray: it has 10.1.0.21 of pool blue, which vm-1 holds"}},
		"an address that some container holds": {with(func(s *doctor.Snapshot) {
			s.Leases = append(s.Leases, leased("10.1.0.25", "", func(l *lease.Lease) {
				l.Namespace, l.PodUID = "",
					""
			}))
		}), nil},

		"a lease of no pool": {func(s *doctor.Snapshot) { s.Leases[0].Pool = "gone" },
			[]string{"lease-without-pool ip/10.1.0.20: there is no pool gone; default/web-0, held for 2d on " +
				"10.0.0.11"}},
		"two pods of a machine": {func(s *doctor.Snapshot) {
			s.Pods = append(s.Pods, pod("web-1"))
			s.Leases[0].Other = &lease.Holder{
				Host: addr("10.0.0.11"), ContainerID: "b", IfName: "eth0", Namespace: "default", PodName: "web-1",
				PodUID: "uid-web-1",
			}
		}, []string{"lease-two-pods ip/10.1.0.20: default/web-0 on host 10.0.0.11 and default/web-1 on host " +
			"10.0.0.11 have both had it for 2d"}},
		"two pods of a machine, since a while": {func(s *doctor.Snapshot) {
			s.Pods = append(s.Pods, pod("web-1"))
			s.Leases[0].Updated = now.Add(-59 * time.Minute)
			s.Leases[0].Other = &lease.Holder{
				Host: addr("10.0.0.11"), ContainerID: "b", IfName: "eth0", Namespace: "default", PodName: "web-1",
				PodUID: "uid-web-1",
			}
		}, nil},
		"a quarantined address": {func(s *doctor.Snapshot) {
			s.Leases = append(s.Leases, quarantined("10.1.0.26", "m1",
				10))
		},
			[]string{"address-quarantined ip/10.1.0.26: m1 answered for it 10m ago, by the report of host 10.0.0.11; " +
				"nobody gets it until " +
				now.Add(50*time.Minute).Format(time.RFC3339)}},
		"a quarantined address that a pod has": {with(func(s *doctor.Snapshot) {
			s.Leases = append(s.Leases, quarantined("10.1.0.25", "m1", 10))
		}), []string{
			"pod-without-lease pod/default/stray: it has 10.1.0.25 of pool blue, which is quarantined: m1 answered " +
				"for it",
			"address-quarantined ip/10.1.0.25: m1 answered for it 10m ago, by the report of host 10.0.0.11; nobody " +
				"gets it until " +
				now.Add(50*time.Minute).Format(time.RFC3339)}},
		"a conflict that is over": {func(s *doctor.Snapshot) {
			l := quarantined("10.1.0.26", "m1", 10)
			l.State, l.HeldFinalizer = lease.Available, false
			s.Leases = append(s.Leases, l)
		}, nil},
		"a MAC that answers for three addresses": {func(s *doctor.Snapshot) {
			for _, a := range []string{"10.1.0.26", "10.1.0.27", "10.1.0.28"} {
				l := quarantined(a, "m1", 10)
				l.State, l.Updated, l.HeldFinalizer = lease.Available, old, false
				s.Leases = append(s.Leases, l)
			}
		}, []string{
			"proxy-arp mac/m1: it answered for 3 addresses within an hour: 10.1.0.26-10.1.0.28",
			"proxy-arp pool/blue: 3 of its addresses were quarantined within an hour: 10.1.0.26-10.1.0.28",
		}},
		"a MAC that answered for three in two hours": {func(s *doctor.Snapshot) {
			for i, a := range []string{"10.1.0.26", "10.1.0.27", "10.1.0.28"} {
				l := quarantined(a, "m1", 30*i)
				l.State, l.Updated, l.HeldFinalizer = lease.Available, old, false
				s.Leases = append(s.Leases, l)
			}
		}, nil},
		"three MACs, released": {func(s *doctor.Snapshot) {
			for i, a := range []string{"10.1.0.26", "10.1.0.27", "10.1.0.28"} {
				l := quarantined(a, fmt.Sprint("m", i), 10)
				l.State, l.Updated, l.HeldFinalizer, l.Conflict.Outcome = lease.Available, old, false,
					lease.ConflictReleased
				s.Leases = append(s.Leases, l)
			}
		}, nil},
		"a lease outside its pool": {func(s *doctor.Snapshot) {
			s.Pools = []doctor.Pool{pool("blue",
				"10.1.0.21-10.1.0.29")}
		},
			[]string{"lease-draining ip/10.1.0.20: pool blue no longer has it; default/web-0, held for 2d on " +
				"10.0.0.11"}},
	}
}

func hostCases() map[string]checkCase {
	return map[string]checkCase{
		"a host that is gone": {func(s *doctor.Snapshot) { s.Nodes[0].Addrs = []netip.Addr{addr("10.0.0.12")} },
			[]string{
				"host-gone host/10.0.0.11: no node has this IP; 2 addresses in use on it",
				"node-in-no-pool node/node-1: no pool lists 10.0.0.12",
			}},
		"a host that never was": {func(s *doctor.Snapshot) {
			s.Pools = append(s.Pools, pool("red", "10.1.0.30",
				func(p *v1.BCSNetPool) { p.Spec.Hosts = []string{"10.0.0.11", "10.0.0.99"} }))
		}, []string{"host-not-a-node host/10.0.0.99: no node has this IP; pool red lists it"}},
		"a node in a host subnet": {func(s *doctor.Snapshot) {
			s.Nodes = append(s.Nodes, doctor.Node{
				Name: "node-2", Addrs: []netip.Addr{addr("172.16.0.1"), addr("10.9.0.12")}, Ready: true,
			})
			s.Leases[1].Host = addr("10.9.0.12")
			s.Pools = append(s.Pools, pool("red", "10.1.0.30", func(p *v1.BCSNetPool) {
				p.Spec.Hosts, p.Spec.HostSubnets = nil, []string{"10.9.0.0/16", "10.9.0.0/24", "10.8.0.0/16"}
			}))
		}, []string{"host-subnet-empty pool/red: no node lies in its host subnet 10.8.0.0/16"}},
		"a node that a host selector matches": {func(s *doctor.Snapshot) {
			s.Nodes = append(s.Nodes, inRack("node-2", "7", "10.9.0.12"))
			s.Leases[1].Host = addr("10.9.0.12")
			s.Pools = append(s.Pools, pool("red", "10.1.0.30", bySelector("7")))
		}, nil},
		"a node that lost its label": {func(s *doctor.Snapshot) {
			s.Nodes = append(s.Nodes, inRack("node-2", "8", "10.9.0.12"), inRack("node-3", "7", "10.9.0.13"))
			s.Leases[1].Host = addr("10.9.0.12")
			s.Pools = append(s.Pools, pool("red", "10.1.0.30", bySelector("7")))
		}, []string{
			"host-in-no-pool host/10.9.0.12: 1 address in use on it, but no pool lists it",
			"node-in-no-pool node/node-2: no pool lists 10.9.0.12",
		}},
		"a host selector beside hosts that matches no node": {func(s *doctor.Snapshot) {
			s.Nodes = append(s.Nodes, doctor.Node{
				Name: "node-2", Addrs: []netip.Addr{addr("10.0.0.12")}, Labels: map[string]string{"rack": "7"},
			})
			s.Pools = append(s.Pools, pool("red", "10.1.0.30", bySelector("7"), func(p *v1.BCSNetPool) {
				p.Spec.Hosts = []string{"10.0.0.11", "10.0.0.12"}
			}))
		}, []string{"host-selector-empty pool/red: its host selector rack=7 matches no node that has an InternalIP"}},
		"a host selector alone that matches no node": {func(s *doctor.Snapshot) {
			s.Pools = append(s.Pools, pool("red", "10.1.0.30", bySelector("7")))
		}, []string{
			"pool-not-ready pool/red: no host may draw from it: its host selector rack=7 matches no node that has an " +
				"InternalIP",
		}},
		"a host selector, and a host that may match it, nodes unknown": {func(s *doctor.Snapshot) {
			s.Missing[doctor.PartNodes], s.Nodes = errForbidden, nil
			s.Leases[1].Host = addr("10.0.0.12")
			s.Pools = append(s.Pools, pool("red", "10.1.0.30", bySelector("7")))
		}, nil},
		"a cluster without nodes": {func(s *doctor.Snapshot) { s.Nodes = nil }, nil},
		"a host that no pool lists": {func(s *doctor.Snapshot) {
			s.Nodes = append(s.Nodes, doctor.Node{Name: "node-2", Addrs: []netip.Addr{addr("10.0.0.12")}, Ready: true})
			s.Leases[1].Host = addr("10.0.0.12")
		}, []string{
			"host-in-no-pool host/10.0.0.12: 1 address in use on it, but no pool lists it",
			"node-in-no-pool node/node-2: no pool lists 10.0.0.12",
		}},
		"a host that no pool lists, nodes unknown": {func(s *doctor.Snapshot) {
			s.Missing[doctor.PartNodes], s.Nodes = errForbidden, nil
			s.Leases[1].Host = addr("10.0.0.12")
		}, []string{"host-in-no-pool host/10.0.0.12: 1 address in use on it, but no pool lists it"}},
		"a host that is gone and in no pool": {func(s *doctor.Snapshot) { s.Leases[1].Host = addr("10.0.0.12") },
			[]string{"host-gone host/10.0.0.12: no node has this IP; 1 address in use on it"}},
		"a lease on no host": {func(s *doctor.Snapshot) { s.Leases[1].Host = netip.Addr{} }, nil},
		"two nodes with one address": {func(s *doctor.Snapshot) {
			s.Nodes = append(s.Nodes, doctor.Node{Name: "node-0", Addrs: s.Nodes[0].Addrs})
		}, []string{"duplicate-host host/10.0.0.11: nodes node-0, node-1 have the same IP"}},
		"two nodes that were given one address": {func(s *doctor.Snapshot) {
			give(&s.Nodes[0], "10.0.0.99", "10.0.0.98")
			s.Nodes = append(s.Nodes, doctor.Node{Name: "node-0"})
			give(&s.Nodes[1], "10.0.0.99")
		}, []string{
			"duplicate-host host/10.0.0.99: the annotation of nodes node-0, node-1 names it",
			"node-in-no-pool node/node-0: no pool lists 10.0.0.99",
		}},
		"a node that was given another's address": {func(s *doctor.Snapshot) {
			s.Nodes = append(s.Nodes, doctor.Node{Name: "node-0"})
			give(&s.Nodes[1], "10.0.0.11")
		}, []string{"duplicate-host host/10.0.0.11: it is the IP of node node-1, and the annotation of node node-0 " +
			"names it"}},
		"an annotation that cannot be read": {func(s *doctor.Snapshot) {
			s.Nodes[0].Unread = []string{"10.8.0.0/24",
				"x"}
		},
			[]string{`host-addresses-invalid node/node-1: its annotation has "10.8.0.0/24", "x", which are not addresses`}},
		"a node with more addresses than count": {func(s *doctor.Snapshot) { s.Nodes[0].Uncounted = 1 },
			[]string{"host-addresses-invalid node/node-1: its status has 1 address beyond the 64 that count"}},
		"a conflist of others before ours": {func(s *doctor.Snapshot) {
			s.Nodes[0].OtherFirst = "05-x.conflist in /d before ours"
		},
			[]string{"node-foreign-conflist node/node-1: 05-x.conflist in /d before ours"}},
		"addresses on a further address of a node": {func(s *doctor.Snapshot) {
			give(&s.Nodes[0], "10.8.0.11")
			s.Pools[0] = pool("blue", "10.1.0.20-10.1.0.29",
				func(p *v1.BCSNetPool) { p.Spec.Hosts = []string{"10.0.0.11", "10.8.0.11"} })
			s.Leases[0].Host = addr("10.8.0.11")
		}, nil},
		"a pool that has a further address of a node": {func(s *doctor.Snapshot) { give(&s.Nodes[0], "10.1.0.23") },
			[]string{"node-address-in-pool ip/10.1.0.23: node node-1 has it, pool blue, too"}},
		"a node that says its address twice": {func(s *doctor.Snapshot) {
			s.Nodes[0].Addrs = append(s.Nodes[0].Addrs,
				addr("10.0.0.11"))
		}, nil},
	}
}

// TestOverlapFix: the addresses are to go from the pool that does not hand them out.
func TestOverlapFix(t *testing.T) {
	t.Parallel()
	young := func(p *v1.BCSNetPool) { p.CreationTimestamp.Time = lately }
	for name, test := range map[string]struct {
		lease lease.Lease
		want  string
	}{
		"nobody holds them":   {leased("10.1.0.20", ""), "bcsnetctl pool remove-ip red 10.1.0.28-10.1.0.29"},
		"the older holds one": {leased("10.1.0.28", ""), "bcsnetctl pool remove-ip red 10.1.0.28-10.1.0.29"},
		"the younger holds one": {leased("10.1.0.28", "", func(l *lease.Lease) { l.Pool = "red" }),
			"bcsnetctl pool remove-ip blue 10.1.0.28-10.1.0.29"},
		"the younger has reserved": {leased("10.1.0.28", "", func(l *lease.Lease) {
			l.Pool, l.State = "red",
				lease.Reserved
		}), "bcsnetctl pool remove-ip blue 10.1.0.28-10.1.0.29"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checks, _ := doctor.Select([]string{"pool-overlap"}, nil)
			found := doctor.Examine(&doctor.Snapshot{
				Now: now, Leases: []lease.Lease{test.lease},
				Pools: []doctor.Pool{pool("blue", "10.1.0.20-10.1.0.29"), pool("red", "10.1.0.28-10.1.0.40", young)},
			}, checks).Findings
			if len(found) != 1 || found[0].Fix != test.want {
				t.Errorf("%+v, want the fix %q", found, test.want)
			}
		})
	}
}

func claimCases() map[string]checkCase {
	with := func(change func(*v1.BCSNetIPClaim)) func(*doctor.Snapshot) {
		return func(s *doctor.Snapshot) { change(s.Claims[0]) }
	}
	says := func(kind string, status metav1.ConditionStatus, reason, message string) func(*doctor.Snapshot) {
		return with(func(c *v1.BCSNetIPClaim) {
			meta.SetStatusCondition(&c.Status.Conditions,
				metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message})
		})
	}
	kept := func(name, address string, change ...func(*lease.Lease)) func(*doctor.Snapshot) {
		return func(s *doctor.Snapshot) {
			l := leased(address, "web-9", change...)
			l.State, l.Retention = lease.Reserved, lease.Retention{Claim: name, Fixed: true}
			s.Leases = append(s.Leases, l)
		}
	}
	return map[string]checkCase{
		"kept for a claim": {kept("default/web", "10.1.0.24"), nil},
		"kept for one that there is not": {kept("default/gone", "10.1.0.24"),
			[]string{"claim-missing claim/default/gone: it does not exist, and has 1 address (10.1.0.24), 0 of them " +
				"in use"}},
		"kept for one that was just lost": {kept("default/gone", "10.1.0.24",
			func(l *lease.Lease) { l.Updated = lately }), nil},
		"in use for one that there is not": {func(s *doctor.Snapshot) { s.Leases[0].Claim = "default/gone" },
			[]string{"claim-missing claim/default/gone: it does not exist, and has 1 address (10.1.0.20), 1 of them " +
				"in use"}},
		"held for objects that there are, for one that another shares, and for one that there is not": {
			func(s *doctor.Snapshot) {
				for address, owner := range map[string]string{
					"10.1.0.24": "capi/fleet/here", "10.1.0.25": "capi/fleet/gone",
					"10.1.0.26": "service/fleet/left", "10.1.0.27": "service/fleet/here", "10.1.0.28": "service/fleet/gone",
				} {
					s.Leases = append(s.Leases, leased(address, "", func(l *lease.Lease) {
						l.Holder = lease.Holder{Owner: owner, Namespace: "fleet"}
					}))
				}
				s.Owners = []string{"capi/fleet/here", "service/fleet/here"}
				s.Shown = sets.New( // by another Service, which shares it
					doctor.Shown{Namespace: "fleet", Addr: netip.MustParseAddr("10.1.0.26")},
					doctor.Shown{Namespace: "other", Addr: netip.MustParseAddr("10.1.0.28")})
			}, []string{
				"owner-missing ip/10.1.0.25: held for 2d, and the IPAddressClaim fleet/gone does not exist",
				"owner-missing ip/10.1.0.28: held for 2d, and the Service fleet/gone does not exist, or is not a LoadBalancer of our class",
			},
		},
		"a claim in conflict": {says(v1.ConditionConflict, metav1.ConditionTrue, "AddressesShared",
			"claim a/b names 10.1.0.9, too"), []string{"claim-conflict claim/default/web: claim a/b names 10.1.0.9, " +
			"too"}},
		"a claim whose spec is of no use": {says(v1.ConditionReady, metav1.ConditionFalse, v1.ReasonInvalidSpec,
			"spec.addresses[0]: what"), []string{"claim-conflict claim/default/web: spec.addresses[0]: what"}},
		"a claim that lacks addresses": {says(v1.ConditionPreallocated, metav1.ConditionFalse, "PoolExhausted",
			"1 more cannot be had"), []string{"claim-short claim/default/web: 1 more cannot be had"}},
		"a claim that is taking some": {says(v1.ConditionPreallocated, metav1.ConditionFalse, v1.ReasonTaking,
			"it takes more"), nil},
		"one that is being deleted": {with(func(c *v1.BCSNetIPClaim) {
			c.DeletionTimestamp = &metav1.Time{Time: now}
			meta.SetStatusCondition(&c.Status.Conditions,
				metav1.Condition{Type: v1.ConditionConflict, Status: metav1.ConditionTrue, Reason: "x"})
		}), nil},
	}
}
