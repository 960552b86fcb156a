package importer

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go4.org/netipx"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

func addr(last int) netip.Addr { return netip.AddrFrom4([4]byte{10, 1, 0, byte(last)}) }

func addrs(from, to int) *netipx.IPSet { return ipaddr.SetOf(netipx.IPRangeFrom(addr(from), addr(to))) }

// bothSystems returns a cut-over of node n1. The other system has 10.1.0.20-10.1.0.29, of which pod a on n1 has .20,
// and pod b on n2 has .21.
func bothSystems() CutOver {
	there := Pool("lan")
	there.Spec = v1.BCSNetPoolSpec{Net: "10.1.0.0", Mask: 24, AvailableIPs: []string{"10.1.0.20-10.1.0.29"}}
	held := func(last int, pod string) Address {
		return Address{Addr: addr(last), State: Held, Holder: lease.Holder{Namespace: "shop", PodName: pod, ContainerID: "c-" + pod}}
	}
	return CutOver{
		Rows: Rows{System: "spiderpool", Pools: []v1.BCSNetPool{there}, Addresses: []Address{held(20, "a"), held(21, "b")}},
		Node: "n1", Stock: 2, InUse: true,
		Seen: Seen{Withdrawn: map[string]*netipx.IPSet{"lan": ipaddr.SetOf()}, By: map[string]string{"lan": "u/1"}},
		Here: map[string]*v1.BCSNetPool{}, Index: index.New(),
		Pods: []workload.Pod{
			{Namespace: "shop", Name: "a", UID: "u-a", Node: "n1", Addrs: []netip.Addr{addr(20)}},
			{Namespace: "shop", Name: "b", UID: "u-b", Node: "n2", Addrs: []netip.Addr{addr(21)}},
		},
	}
}

// has gives the pool here some addresses.
func (c *CutOver) has(texts ...string) {
	here := Pool("lan")
	here.Labels = map[string]string{v1.ImportedLabel: c.System}
	here.Spec = v1.BCSNetPoolSpec{Net: "10.1.0.0", Mask: 24, AvailableIPs: texts}
	c.Here["lan"] = &here
}

func (c *CutOver) lease(last int, change func(lease.Lease) (lease.Lease, bool)) {
	l, _ := change(lease.Lease{Addr: addr(last), Params: lease.Params{Pool: "lan"}})
	l.Version = uint64(time.Now().UnixNano()) // later than what the index has
	c.Index.Feed.Watched(l)
}

func (c *CutOver) pod(name, node string, last int) {
	c.Pods = append(c.Pods, workload.Pod{Namespace: "shop", Name: name, UID: "u-" + name, Node: node,
		Addrs: []netip.Addr{addr(last)}})
}

func bindTo(pod string) func(lease.Lease) (lease.Lease, bool) {
	return func(l lease.Lease) (lease.Lease, bool) {
		return lease.Bind(l, l.Params, lease.Holder{Namespace: "shop", PodName: pod, PodUID: "u-" + pod,
			ContainerID: "new", IfName: "eth0"}, lease.Retention{}, time.Unix(1e9, 0))
	}
}

func importFor(pod string) func(lease.Lease) (lease.Lease, bool) {
	return func(l lease.Lease) (lease.Lease, bool) {
		return lease.Import(l, l.Params, lease.Holder{Namespace: "shop", PodName: pod, PodUID: "u-" + pod,
			ContainerID: "c-" + pod, IfName: "eth0"}, lease.Retention{}, time.Unix(1e9, 0),
			lease.Change{Verb: lease.VerbImport, Reason: importReason("spiderpool", "c-"+pod)})
	}
}

func givenBackTo(l lease.Lease) (lease.Lease, bool) {
	return lease.Reserve(l, l.Params, time.Unix(1e9, 0), Here{System: "spiderpool"}.Change(lease.VerbReserve))
}

func heldFor(who string) func(lease.Lease) (lease.Lease, bool) {
	return func(l lease.Lease) (lease.Lease, bool) {
		return lease.Reserve(l, l.Params, time.Unix(1e9, 0), Here{System: "spiderpool"}.Hold(who))
	}
}

func TestShares(t *testing.T) {
	for name, c := range map[string]struct {
		when func(*CutOver)
		want string
	}{
		"the first look": {func(*CutOver) {}, "withdraw 10.1.0.20 + 10.1.0.28-10.1.0.29, 6 left"},
		"a pod that reports no address yet stays": {func(c *CutOver) { c.Pods[0].Addrs = nil },
			"withdraw  + 10.1.0.28-10.1.0.29, 6 left"},
		"another pod of the name has it": {func(c *CutOver) { c.Rows.Addresses[0].Holder.PodUID = "u-before" },
			"withdraw  + 10.1.0.28-10.1.0.29, 6 left"},
		"two pods report it": {func(c *CutOver) { c.pod("c", "n1", 20) }, "withdraw  + 10.1.0.28-10.1.0.29, 6 left"},
		"a claim there keeps it": {func(c *CutOver) { c.Rows.Addresses[0].Claim = "shop/a" },
			"withdraw  + 10.1.0.28-10.1.0.29, 6 left"},
		"what is reserved or reported is not free": {func(c *CutOver) {
			c.Rows.Addresses = append(c.Rows.Addresses, Address{Addr: addr(29), State: Kept})
			c.pod("c", "n2", 28)
		}, "withdraw 10.1.0.20 + 10.1.0.26-10.1.0.27, 4 left"},
		"addresses in use cannot be withdrawn": {func(c *CutOver) { c.InUse = false },
			"withdraw  + 10.1.0.28-10.1.0.29, 6 left, 10.1.0.20 stays"},
		"fewer are free than wanted": {func(c *CutOver) { c.Stock = 100 }, "withdraw 10.1.0.20 + 10.1.0.22-10.1.0.29, 0 left"},
		"the second look": {func(c *CutOver) { c.Withdrawn["lan"] = Union(addrs(20, 20), addrs(28, 29)) },
			"settled 10.1.0.20, 10.1.0.28-10.1.0.29, 6 left"},
		"somebody there got one in between": {func(c *CutOver) {
			c.Withdrawn["lan"] = Union(addrs(20, 20), addrs(28, 29))
			c.Rows.Addresses = append(c.Rows.Addresses, Address{Addr: addr(29), State: Held, Holder: lease.Holder{PodName: "late"}})
		}, "withdraw  + 10.1.0.27, settled 10.1.0.20, 10.1.0.28, back 10.1.0.29, 5 left"},
		"a pod of the node got one in between": {func(c *CutOver) {
			c.Withdrawn["lan"] = Union(addrs(20, 20), addrs(28, 29))
			c.Rows.Addresses = append(c.Rows.Addresses, Address{Addr: addr(29), State: Held,
				Holder: lease.Holder{Namespace: "shop", PodName: "late"}})
			c.pod("late", "n1", 29)
		}, "withdraw  + 10.1.0.27, settled 10.1.0.20, 10.1.0.28-10.1.0.29, 5 left"},
		"all is here": {func(c *CutOver) {
			c.Withdrawn["lan"] = Union(addrs(20, 20), addrs(28, 29))
			c.has("10.1.0.20", "10.1.0.28-10.1.0.29")
			c.lease(20, importFor("a"))
		}, "6 left"},
		"one is in use here: the stock is filled up": {func(c *CutOver) {
			c.Withdrawn["lan"] = Union(addrs(20, 20), addrs(28, 29))
			c.has("10.1.0.20", "10.1.0.28-10.1.0.29")
			c.lease(20, importFor("a"))
			c.lease(29, bindTo("new"))
			c.pod("new", "n1", 29)
		}, "withdraw  + 10.1.0.27, 5 left"},
		"the other system still notes an earlier pod": {func(c *CutOver) {
			c.Withdrawn["lan"] = Union(addrs(20, 20), addrs(28, 29))
			c.has("10.1.0.20", "10.1.0.28-10.1.0.29")
			c.Pods = c.Pods[1:]
		}, "hold 10.1.0.20, 6 left"},
		"a pod that is created anew gets it there": {func(c *CutOver) {
			c.Withdrawn["lan"] = Union(addrs(20, 20), addrs(28, 29))
			c.has("10.1.0.20", "10.1.0.28-10.1.0.29")
			c.Pods[0].Node, c.Pods[0].UID = "n2", "u-again"
		}, "hold 10.1.0.20, 6 left"},
		"it is held for an earlier pod": {func(c *CutOver) {
			c.Withdrawn["lan"] = Union(addrs(20, 20), addrs(28, 29))
			c.has("10.1.0.20", "10.1.0.28-10.1.0.29")
			c.Pods = c.Pods[1:]
			c.lease(20, heldFor("shop/a"))
		}, "6 left"},
		"the other system has it no more": {func(c *CutOver) {
			c.Withdrawn["lan"] = Union(addrs(20, 20), addrs(28, 29))
			c.has("10.1.0.20", "10.1.0.28-10.1.0.29")
			c.Pods, c.Rows.Addresses = c.Pods[1:], c.Rows.Addresses[1:]
			c.lease(20, heldFor("shop/a"))
		}, "lift 10.1.0.20, 6 left"},
		"a pod of a StatefulSet stays": {func(c *CutOver) {
			c.Pods[0].Controller, c.Pods[0].Generated = workload.Owner{Group: "apps", Kind: "StatefulSet", Name: "a"}, true
		}, "withdraw  + 10.1.0.28-10.1.0.29, 6 left, 10.1.0.20 stays for its name"},
		"so does a virtual machine": {func(c *CutOver) {
			c.Pods[0].Controller = workload.Owner{Group: "kubevirt.io", Kind: "VirtualMachineInstance", Name: "a"}
			c.Pods[0].Generated = true
		}, "withdraw  + 10.1.0.28-10.1.0.29, 6 left, 10.1.0.20 stays for its name"},
		"one of a ReplicaSet moves": {func(c *CutOver) {
			c.Pods[0].Controller, c.Pods[0].Generated = workload.Owner{Group: "apps", Kind: "ReplicaSet", Name: "a"}, true
			c.ByName = true
		}, "withdraw 10.1.0.20 + 10.1.0.28-10.1.0.29, 6 left"},
		"a pod with a given name stays with a system that goes by names": {func(c *CutOver) { c.ByName = true },
			"withdraw  + 10.1.0.28-10.1.0.29, 6 left, 10.1.0.20 stays for its name"},
		"killed between two objects": {func(c *CutOver) {
			c.Torn = map[string]*netipx.IPSet{"lan": Union(addrs(22, 22), addrs(29, 29))}
		}, "withdraw 10.1.0.20 + 10.1.0.28-10.1.0.29, torn 10.1.0.22, 6 left"},
		"killed after the lease": {func(c *CutOver) {
			c.Withdrawn["lan"] = Union(addrs(20, 20), addrs(28, 29))
			c.has()
			c.lease(20, importFor("a"))
			c.Pods = c.Pods[1:]
		}, "settled 10.1.0.20, 10.1.0.28-10.1.0.29, 6 left"},
		"the way back was killed": {func(c *CutOver) {
			c.Withdrawn["lan"] = Union(addrs(20, 20), addrs(28, 29))
			c.has("10.1.0.20", "10.1.0.29")
			c.lease(28, givenBackTo)
			c.lease(29, givenBackTo)
			c.lease(20, importFor("a"))
		}, "settled 10.1.0.28-10.1.0.29, 6 left"},
		"somebody had the other system hand out again": {func(c *CutOver) {
			c.Withdrawn["lan"] = addrs(28, 29)
			c.has("10.1.0.20", "10.1.0.28-10.1.0.29")
		}, "wrong: both systems allocate 10.1.0.20"},
		"a pool of a switch at once": {func(c *CutOver) { c.has("10.1.0.20-10.1.0.29") },
			"wrong: both systems allocate 10.1.0.20-10.1.0.29"},
		"a pool by hand": {func(c *CutOver) { c.has(); c.Here["lan"].Labels = nil },
			"wrong: the pool of its name here is not of an import of this system"},
		"another pool has the range": {func(c *CutOver) {
			c.has("10.1.0.29")
			c.Here["mine"], c.Here["lan"] = c.Here["lan"], nil
			delete(c.Here, "lan")
		}, "wrong: pool mine here has addresses of it"},
		"what was withdrawn during the wait does not settle": {func(c *CutOver) {
			c.Withdrawn["lan"] = Union(addrs(20, 20), addrs(28, 29))
			c.Before = &Seen{Withdrawn: map[string]*netipx.IPSet{"lan": Union(addrs(20, 20), addrs(29, 29))}, By: c.By}
		}, "settled 10.1.0.20, 10.1.0.29, 6 left"},
		"what may have gone back during the wait does not settle": {func(c *CutOver) {
			c.Withdrawn["lan"] = addrs(28, 29)
			c.Before = &Seen{Withdrawn: c.Withdrawn, By: map[string]string{"lan": "u/0"}}
			c.Stock, c.Pods = 0, nil
		}, "6 left"},
		"nothing of the pool was seen before the wait": {func(c *CutOver) {
			c.Withdrawn["lan"], c.Before = addrs(28, 29), &Seen{}
			c.Stock, c.Pods = 0, nil
		}, "6 left"},
		"an object there cannot be read": {func(c *CutOver) {
			c.Withdrawn["lan"] = addrs(28, 29)
			c.Conflicts = []Remark{{"SpiderIPPool red", "its allocatedIPs cannot be read"}}
		}, "wrong: its allocatedIPs cannot be read"},
		"nothing can withdraw": {func(c *CutOver) { delete(c.Withdrawn, "lan") },
			"wrong: no object of the other system can withdraw addresses of it"},
		"somebody there asked for an address of ours": {func(c *CutOver) {
			c.Withdrawn["lan"] = addrs(28, 29)
			c.has("10.1.0.28-10.1.0.29")
			c.lease(28, bindTo("new"))
			c.pod("new", "n1", 28)
			c.pod("asked", "n2", 28)
			c.Rows.Addresses = append(c.Rows.Addresses, Address{Addr: addr(28), State: Held,
				Holder: lease.Holder{Namespace: "shop", PodName: "asked"}})
		}, "wrong: shop/new has 10.1.0.28 here, and shop/asked has it in the other system"},
	} {
		t.Run(name, func(t *testing.T) {
			in := bothSystems()
			c.when(&in)
			shares, wrong := in.Shares()
			var got []string
			for _, s := range shares {
				if s.Withdraws() {
					got = append(got, fmt.Sprintf("withdraw %s + %s", ipaddr.FormatSet(s.Moved), ipaddr.FormatSet(s.Taken)))
				}
				if !empty(s.Settled) {
					got = append(got, "settled "+ipaddr.FormatSet(s.Settled))
				}
				if !empty(s.Back) {
					got = append(got, "back "+ipaddr.FormatSet(s.Back))
				}
				if !empty(s.Torn) {
					got = append(got, "torn "+ipaddr.FormatSet(s.Torn))
				}
				if len(s.Hold) > 0 {
					got = append(got, "hold "+texts(s.Hold))
				}
				if len(s.Lift) > 0 {
					got = append(got, "lift "+texts(s.Lift))
				}
				got = append(got, fmt.Sprintf("%d left", s.Left))
				if !empty(s.Named) {
					got = append(got, ipaddr.FormatSet(s.Named)+" stays for its name")
				}
				if !empty(s.Stay) {
					got = append(got, ipaddr.FormatSet(s.Stay)+" stays")
				}
			}
			for _, r := range wrong {
				text, _, _ := strings.Cut(r.Cause, ": cordon")
				got = append(got, "wrong: "+text)
			}
			if diff := cmp.Diff(c.want, strings.Join(got, ", ")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestReturns(t *testing.T) {
	for name, c := range map[string]struct {
		when func(*CutOver)
		want string
	}{
		"pods keep theirs, free ones beyond the stock go": {func(*CutOver) {}, "held 10.1.0.20, free 10.1.0.27"},
		"all nodes": {func(c *CutOver) { c.Node, c.Stock = "", 0 }, "held 10.1.0.20, free 10.1.0.27 10.1.0.28 10.1.0.29"},
		"the other system gave it up": {func(c *CutOver) { c.Rows.Addresses = c.Rows.Addresses[1:] },
			"free 10.1.0.27, 10.1.0.20 stays: shop/a got it here, and the other system does not have it for this pod"},
		"a pod that got it here": {func(c *CutOver) { c.lease(29, bindTo("new")); c.pod("new", "n1", 29) },
			"held 10.1.0.20, 10.1.0.29 stays: shop/new got it here, and the other system does not have it for this pod"},
		"one of another node": {func(c *CutOver) { c.lease(29, bindTo("new")); c.pod("new", "n3", 29) }, "held 10.1.0.20"},
		"set aside by hand": {func(c *CutOver) {
			c.lease(27, func(l lease.Lease) (lease.Lease, bool) {
				return lease.Reserve(l, l.Params, time.Unix(1e9, 0), lease.Change{Verb: lease.VerbReserve, Reason: "printer"})
			})
		}, "held 10.1.0.20, 10.1.0.27 stays: it was set aside here"},
		"a pod without a lease": {func(c *CutOver) { c.pod("lost", "n1", 27) },
			"held 10.1.0.20, 10.1.0.27 stays: pod shop/lost reports it, and the other system does not have it for this pod"},
		"killed when all was reserved": {func(c *CutOver) {
			c.Stock = 0
			c.has()
			for _, last := range []int{20, 27, 28, 29} {
				c.lease(last, givenBackTo)
			}
		}, "free 10.1.0.20 10.1.0.27 10.1.0.28 10.1.0.29"},
		"killed between two objects": {func(c *CutOver) {
			c.Torn = map[string]*netipx.IPSet{"lan": addrs(25, 25)}
		}, "held 10.1.0.20, free 10.1.0.25 10.1.0.27"},
		"held for an earlier pod": {func(c *CutOver) { c.Stock = 0; c.lease(29, heldFor("shop/a")) },
			"held 10.1.0.20, free 10.1.0.27 10.1.0.28 10.1.0.29"},
		"killed when one was reserved": {func(c *CutOver) { c.lease(29, givenBackTo) }, "held 10.1.0.20, free 10.1.0.29"},
		"the pool here is gone": {func(c *CutOver) {
			c.Here, c.Index, c.Node, c.Stock = nil, index.New(), "", 0
		}, "free 10.1.0.20 10.1.0.27 10.1.0.28 10.1.0.29"},
	} {
		t.Run(name, func(t *testing.T) {
			in := bothSystems()
			in.Withdrawn["lan"] = Union(addrs(20, 20), addrs(27, 29))
			in.has("10.1.0.20", "10.1.0.27-10.1.0.29")
			in.lease(20, importFor("a"))
			c.when(&in)
			all, stay := in.Returns(Here{System: "spiderpool", Now: time.Unix(2e9, 0)})
			var got []string
			for _, r := range all {
				if len(r.Held) > 0 {
					got = append(got, "held "+texts(r.Held))
				}
				if len(r.Free) > 0 {
					got = append(got, "free "+texts(r.Free))
				}
			}
			for _, r := range stay {
				got = append(got, strings.TrimPrefix(r.Object, "BCSNetIP ")+" stays: "+r.Cause)
			}
			if diff := cmp.Diff(c.want, strings.Join(got, ", ")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func texts(list []lease.Lease) string {
	var out []string
	for _, l := range list {
		out = append(out, l.Addr.String())
	}
	return strings.Join(out, " ")
}
