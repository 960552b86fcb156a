package resource

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// fitPool is a pool of 10.0.0.0/24.
func fitPool(name, parent, addresses string, change ...func(*v1.BCSNetPool)) ipam.Pool {
	o := &v1.BCSNetPool{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(time.Unix(1, 0))},
		Spec: v1.BCSNetPoolSpec{Net: "10.0.0.0", Mask: 24, Gateway: "10.0.0.1", Parent: parent}}
	if addresses != "" {
		o.Spec.AvailableIPs = strings.Split(addresses, ", ")
	}
	for _, c := range change {
		c(o)
	}
	return store.Pool(o)
}

// Which changes of pools are refused because of parents and children, and in which words.
func TestFit(t *testing.T) {
	fresh := func(o *v1.BCSNetPool) { o.CreationTimestamp = metav1.Time{} }
	cut := func(o *v1.BCSNetPool) { o.Spec.BlockSize = 28 }
	of := func(ns ...string) func(*v1.BCSNetPool) {
		return func(o *v1.BCSNetPool) { o.Spec.Namespaces = ns }
	}
	otherNet := func(o *v1.BCSNetPool) { o.Spec.Net, o.Spec.Mask = "10.0.0.0", 25 }
	net, web := fitPool("net", "", "10.0.0.10-10.0.0.99"), fitPool("web", "net", "10.0.0.20-10.0.0.29")
	split := fitPool("net", "", "10.0.0.0-10.0.0.127", cut)
	block := fitPool("net-10-0-0-16-28", "net", "10.0.0.16/28", of("shop"))
	wide := func(o *v1.BCSNetPool) { o.Spec.Mask, o.Spec.BlockSize = 8, 32 }
	fine, tooMany := fitPool("fine", "", "10.0.0.0/24", wide), fitPool("fine", "", "10.0.0.0/8", wide)
	for name, tc := range map[string]struct {
		before, change []ipam.Pool
		want           string
	}{
		"a new group": {[]ipam.Pool{net}, []ipam.Pool{fitPool("web", "net", "10.0.0.20-10.0.0.29", fresh)}, ""},
		"outside": {
			[]ipam.Pool{net}, []ipam.Pool{fitPool("web", "net", "10.0.0.95-10.0.0.105", fresh)},
			"pool web: bad ip-pool 10.0.0.95-10.0.0.105, EPG ip-pool must be a subset of network 10.0.0.0/24: " +
				"parent net does not have 10.0.0.100-10.0.0.105",
		},
		"all of it": {
			[]ipam.Pool{net}, []ipam.Pool{fitPool("web", "net", "10.0.0.10-10.0.0.99", fresh)},
			"pool web: bad ip-pool 10.0.0.10-10.0.0.99, EPG ip-pool must be a subset of network 10.0.0.0/24: " +
				"it has all addresses of parent net",
		},
		"another subnet": {
			[]ipam.Pool{net}, []ipam.Pool{fitPool("web", "net", "10.0.0.20", fresh, otherNet)},
			"pool web: bad ip-pool 10.0.0.20, EPG ip-pool must be a subset of network 10.0.0.0/24: " +
				"its net and mask, 10.0.0.0/25, differ from parent net",
		},
		"more than it can be split into": {
			[]ipam.Pool{fine}, []ipam.Pool{tooMany},
			"pool fine: blockSize 32 makes more than 65536 blocks of 10.0.0.2-10.255.255.254: " +
				"use a shorter one, or several pools",
		},
		"a new one that cannot be split": {
			nil, []ipam.Pool{tooMany},
			"pool fine: blockSize 32 makes more than 65536 blocks of 10.0.0.2-10.255.255.254: " +
				"use a shorter one, or several pools",
		},
		"one that could not be split before": {[]ipam.Pool{tooMany}, []ipam.Pool{tooMany}, ""},
		"no parent":                          {nil, []ipam.Pool{web}, "pool web: parent net does not exist"},
		"a group and its parent, in any order": {
			nil, []ipam.Pool{fitPool("web", "net", "10.0.0.20-10.0.0.29", fresh), net}, "",
		},
		"over another group": {
			[]ipam.Pool{net, web}, []ipam.Pool{fitPool("a", "net", "10.0.0.29-10.0.0.30", fresh)},
			"pool a: 10.0.0.29 is also in pool web, a child of parent net that comes first: children never overlap",
		},
		"an older group grows over a younger one": {
			[]ipam.Pool{net, fitPool("a", "net", "10.0.0.30"), web}, []ipam.Pool{fitPool("a", "net", "10.0.0.29-10.0.0.30")},
			"pool a cannot be changed in this way, because pool web would lose addresses: " +
				"10.0.0.29 is also in pool a, a child of parent net that comes first: children never overlap",
		},
		"the parent shrinks under it": {
			[]ipam.Pool{net, web}, []ipam.Pool{fitPool("net", "", "10.0.0.10-10.0.0.25")},
			"pool net cannot be changed in this way, because pool web would lose addresses: bad ip-pool 10.0.0.20-10.0.0.29, " +
				"EPG ip-pool must be a subset of network 10.0.0.0/24: parent net does not have 10.0.0.26-10.0.0.29",
		},
		"the parent shrinks to it": {
			[]ipam.Pool{net, web}, []ipam.Pool{fitPool("net", "", "10.0.0.20-10.0.0.29")},
			"pool net cannot be changed in this way, because pool web would lose addresses: bad ip-pool 10.0.0.20-10.0.0.29, " +
				"EPG ip-pool must be a subset of network 10.0.0.0/24: it has all addresses of parent net",
		},
		"the parent shrinks beside it": {[]ipam.Pool{net, web}, []ipam.Pool{fitPool("net", "", "10.0.0.15-10.0.0.99")}, ""},
		"the parent shrinks and so it does": {
			[]ipam.Pool{net, web}, []ipam.Pool{fitPool("net", "", "10.0.0.10-10.0.0.25"), fitPool("web", "net", "10.0.0.20")}, "",
		},
		"one that did not fit before": {
			[]ipam.Pool{net, fitPool("web", "net", "10.0.0.99-10.0.0.120")},
			[]ipam.Pool{fitPool("web", "net", "10.0.0.99-10.0.0.110")}, "",
		},
		"a parent comes for one that does not fit it": {
			[]ipam.Pool{fitPool("web", "net", "10.0.0.9")}, []ipam.Pool{net}, "",
		},
		"a group is split off a split pool": {
			[]ipam.Pool{split}, []ipam.Pool{fitPool("web", "net", "10.0.0.20-10.0.0.29", fresh)},
			"pool web: it is not a block of pool net: availableIPs of a block are one CIDR of length 28, its blockSize",
		},
		"a block": {[]ipam.Pool{split}, []ipam.Pool{block}, ""},
		"a parent of groups is split": {
			[]ipam.Pool{net, web}, []ipam.Pool{fitPool("net", "", "10.0.0.10-10.0.0.99", cut)},
			"pool net cannot be changed in this way, because pool web would lose addresses: it is not a block of pool net: " +
				"availableIPs of a block are one CIDR of length 28, its blockSize",
		},
		"a split pool grows": {[]ipam.Pool{split, block}, []ipam.Pool{fitPool("net", "", "10.0.0.0/24", cut)}, ""},
		"over another pool": {
			[]ipam.Pool{net, fitPool("other", "", "10.0.0.100-10.0.0.109")}, []ipam.Pool{fitPool("net", "", "10.0.0.10-10.0.0.100")},
			"pool net cannot have 10.0.0.100: pool other owns 10.0.0.100",
		},
		"over a group of another pool": {
			[]ipam.Pool{net, web}, []ipam.Pool{fitPool("other", "", "10.0.0.29", fresh)},
			"pool other cannot have 10.0.0.29: pool web owns 10.0.0.29",
		},
		"a group over its parent's addresses is none": {
			[]ipam.Pool{net, web}, []ipam.Pool{fitPool("web", "net", "10.0.0.20-10.0.0.39")}, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			fit := NewFit(tc.before, tc.change...)
			got := ""
			for _, c := range tc.change {
				if err := fit.Overlaps(c.Name); err != nil && got == "" {
					got = err.Error()
				}
			}
			if got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

// What a change of a group does to its parent.
func TestShifts(t *testing.T) {
	net, web := fitPool("net", "", "10.0.0.10-10.0.0.99"), fitPool("web", "net", "10.0.0.20-10.0.0.29")
	shifts := NewFit([]ipam.Pool{net, web}, fitPool("web", "net", "10.0.0.25-10.0.0.34")).Shifts("web")
	if len(shifts) != 1 || shifts[0].Pool != "net" || ipaddr.FormatSet(shifts[0].More) != "10.0.0.20-10.0.0.24" ||
		ipaddr.FormatSet(shifts[0].Fewer) != "10.0.0.30-10.0.0.34" {
		t.Errorf("got %v", shifts)
	}
}

// A change of a pool with thousands of blocks is checked in no time.
func TestFitManyBlocks(t *testing.T) {
	before := []ipam.Pool{fitPool("net", "", "10.0.0.0/16", func(o *v1.BCSNetPool) {
		o.Spec.Mask, o.Spec.BlockSize = 16, 28
	})}
	for i := range 4096 {
		cidr := fmt.Sprintf("10.0.%d.%d", i/16, i%16*16)
		before = append(before, fitPool("net-"+strings.ReplaceAll(cidr, ".", "-")+"-28", "net", cidr+"/28", func(o *v1.BCSNetPool) {
			o.Spec.Mask, o.Spec.Namespaces = 16, []string{fmt.Sprintf("ns-%d", i)}
		}))
	}
	began := time.Now()
	fit := NewFit(before, fitPool("net", "", "10.0.0.0-10.0.255.239", func(o *v1.BCSNetPool) {
		o.Spec.Mask, o.Spec.BlockSize = 16, 28
	}))
	err := fit.Overlaps("net")
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("took %s", took)
	}
	if err != nil { // a block has what its parent still has
		t.Error(err)
	}
}
