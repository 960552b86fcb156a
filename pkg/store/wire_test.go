package store

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"net/netip"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

var compareAddrs = cmp.Comparer(func(a, b netip.Addr) bool { return a == b })

var (
	drawIPv4 = rapid.Custom(func(t *rapid.T) netip.Addr {
		return netip.AddrFrom4([4]byte(rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(t, "bytes")))
	})
	drawIPv6 = rapid.Custom(func(t *rapid.T) netip.Addr {
		b := [16]byte(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "bytes"))
		b[0] = 0x20 // no IPv4 in disguise
		return netip.AddrFrom16(b)
	})
	drawText = rapid.StringMatching(`[a-zA-Z0-9/:."<>&é -]{0,20}`)
	drawTime = rapid.Custom(func(t *rapid.T) time.Time {
		if rapid.Bool().Draw(t, "never") {
			return time.Time{}
		}
		return time.Unix(rapid.Int64Range(0, 1<<33).Draw(t, "seconds"),
			rapid.Int64Range(0, 999_999_999).Draw(t, "nanoseconds")).UTC()
	})
)

// drawLease draws a lease with every field that an object holds.
func drawLease(t *rapid.T) lease.Lease {
	family := rapid.SampledFrom([]*rapid.Generator[netip.Addr]{drawIPv4, drawIPv6}).Draw(t, "family")
	optional := func(name string) netip.Addr {
		if rapid.Bool().Draw(t, "no "+name) {
			return netip.Addr{}
		}
		return family.Draw(t, name)
	}
	text := func(name string) string { return drawText.Draw(t, name) }
	l := lease.Lease{
		Addr:    family.Draw(t, "address"),
		Version: rapid.Uint64Range(1, 1<<63).Draw(t, "version"),
		State:   rapid.SampledFrom([]lease.State{lease.Available, lease.Active, lease.Reserved}).Draw(t, "state"),
		Params:  lease.Params{Pool: text("pool"), Bits: rapid.IntRange(1, 128).Draw(t, "bits"), Gateway: optional("gateway")},
		Holder: lease.Holder{
			Host: optional("host"), ContainerID: text("container"), IfName: text("interface"),
			Namespace: text("namespace"), PodName: text("pod"), PodUID: text("UID"), Owner: text("owner"),
			SetSize: rapid.IntRange(0, 16).Draw(t, "set size"), Slot: rapid.IntRange(0, 15).Draw(t, "slot"),
			StartedAt:   drawTime.Draw(t, "started"),
			Termination: time.Duration(rapid.Int32Range(0, math.MaxInt32).Draw(t, "termination")) * time.Second,

			BoundVersion: rapid.Uint64().Draw(t, "bound"),
		},
		Retention: lease.Retention{
			Claim: text("claim"), Fixed: rapid.Bool().Draw(t, "fixed"), PodPrimaryKey: text("key"), ExpiredTime: text("expires"),
		},
		Updated:       drawTime.Draw(t, "updated"),
		HeldFinalizer: rapid.Bool().Draw(t, "finalizer"),
	}
	if l.ContainerID != "" {
		l.UIDNamed, l.AddressNamed = rapid.Bool().Draw(t, "UID named"), rapid.Bool().Draw(t, "address named")
		l.CNINetwork = text("CNI network")
		l.Given = drawGiven(t)
	}
	if rapid.Bool().Draw(t, "contested") {
		l.Conflict = &lease.Conflict{
			MAC: text("MAC"), Host: optional("reporting host"), ContainerID: text("reporting container"),
			At: drawTime.Draw(t, "reported"), Until: drawTime.Draw(t, "rests until"),
			Outcome: rapid.SampledFrom([]lease.ConflictOutcome{
				lease.ConflictQuarantined, lease.ConflictReleased, lease.ConflictKept,
			}).Draw(t, "outcome"),
		}
	}
	for range rapid.IntRange(0, lease.MaxHistory).Draw(t, "history") {
		l.History = l.History.Add(lease.Past{
			Holder: text("earlier holder"), Host: optional("earlier host"), Since: drawTime.Draw(t, "since"),
			Until:  drawTime.Draw(t, "until"),
			Change: lease.Change{Verb: text("verb"), By: text("by"), Reason: text("reason")},
		})
	}
	if ids := rapid.SliceOfN(drawText, 0, lease.MaxSuperseded).Draw(t, "superseded"); len(ids) > 0 {
		l.Superseded = ids
	}
	if l.State == lease.Active && rapid.Bool().Draw(t, "migrates") {
		l.Other = &lease.Holder{
			Host: optional("second host"), ContainerID: text("second container"), IfName: text("second interface"),
			Namespace: l.Namespace, PodName: text("second pod"), PodUID: text("second UID"), UIDNamed: true,
			SetSize: l.SetSize, Slot: l.Slot, StartedAt: drawTime.Draw(t, "second started"), CNINetwork: text("second CNI network"),
			Termination: time.Duration(rapid.Int32Range(0, math.MaxInt32).Draw(t, "second termination")) * time.Second,

			BoundVersion: rapid.Uint64().Draw(t, "second bound"),
		}
		if l.Other.ContainerID != "" {
			l.Other.Given = drawGiven(t)
		}
	}
	return l
}

// drawGiven draws what a container was given, or that it is not known.
func drawGiven(t *rapid.T) lease.Given {
	if rapid.Bool().Draw(t, "not known what was given") {
		return ""
	}
	s := lease.Settings{Link: lease.Link{
		VLAN: rapid.IntRange(0, 4094).Draw(t, "vlan"), MTU: rapid.IntRange(0, 65535).Draw(t, "mtu"),
	}}
	if rapid.Bool().Draw(t, "with a gateway") {
		s.Gateway = drawIPv4.Draw(t, "given gateway")
	}
	for range rapid.IntRange(0, 8).Draw(t, "given routes") {
		s.Routes = append(s.Routes, lease.Route{Dst: netip.PrefixFrom(drawIPv4.Draw(t, "given dst"), 16)})
	}
	if search := rapid.SliceOfN(drawText, 0, 8).Draw(t, "given search"); len(search) > 0 {
		s.DNS = &lease.DNS{Search: search}
	}
	return lease.NewGiven(s)
}

// What is written is read back, whole.
func TestLeaseRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawLease(t)
		body, err := json.Marshal(Object(want))
		if err != nil {
			t.Fatal(err)
		}
		got, err := decodeLease(body)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, compareAddrs); diff != "" {
			t.Fatalf("-want +got:\n%s", diff)
		}
	})
}

// Whoever writes a lease as seen from its second attachment writes the same object.
func TestWrittenFromTheSecondAttachment(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := drawLease(t)
		if diff := cmp.Diff(Object(l), Object(l.Turned())); diff != "" {
			t.Fatalf("-from the first +from the second:\n%s", diff)
		}
	})
}

// A release that does not know the field gives the address to somebody else, or to nobody, and leaves the field and its
// label as they are: they count no more.
func TestSecondAttachmentOfAnEarlierRelease(t *testing.T) {
	l := lease.Lease{Addr: netip.MustParseAddr("10.0.0.1"), Version: 1, State: lease.Active, Holder: lease.Holder{
		ContainerID: "c1", Namespace: "default", PodName: "a", PodUID: "u1",
	}, Other: &lease.Holder{ContainerID: "c2", Namespace: "default", PodName: "b", PodUID: "u2", UIDNamed: true}}
	o := Object(l)
	if o.Labels[v1.MigratingLabel] == "" {
		t.Error("no label finds it")
	}
	for _, state := range []v1.IPPhase{v1.IPAvailable, v1.IPReserved} {
		o.Status.Status = state
		got, err := Lease(o, false)
		if err != nil || got.Other != nil || got.Foreign {
			t.Errorf("%s: %+v, %v", state, got, err)
		}
		if next := Object(got); next.Status.SecondAttachment != nil || len(next.Labels) > 0 {
			t.Errorf("%s: the next write leaves %+v, %v", state, next.Status.SecondAttachment, next.Labels)
		}
	}
}

// That the request named the pod's UID is said of one container: a release that does not know the field leaves it as it
// is when it gives the address to another.
func TestUIDIsNamedByOneContainer(t *testing.T) {
	l := lease.Lease{Addr: netip.MustParseAddr("10.0.0.1"), Version: 1, State: lease.Active, Holder: lease.Holder{
		ContainerID: "0123456789abcdef0", Namespace: "default", PodName: "web", PodUID: "u1", UIDNamed: true,
	}}
	o := Object(l)
	for id, want := range map[string]bool{l.ContainerID: true, "fedcba9876543210f": false, "": false} {
		o.Status.ContainerID = id
		if got, err := Lease(o, false); err != nil || got.UIDNamed != want {
			t.Errorf("held by container %q: named %v, %v", id, got.UIDNamed, err)
		}
	}
}

// Neither does the network, nor that the address was named, pass to the next holder of an address that a release which
// knows neither field gives it to.
func TestNetworkIsNamedByOneContainer(t *testing.T) {
	l := lease.Lease{Addr: netip.MustParseAddr("10.0.0.1"), Version: 1, State: lease.Active, Holder: lease.Holder{
		ContainerID: "0123456789abcdef0", Namespace: "default", PodName: "web", CNINetwork: "pods", AddressNamed: true,
	}}
	o := Object(l)
	for id, want := range map[string]string{l.ContainerID: "pods", "fedcba9876543210f": "", "": ""} {
		o.Status.ContainerID = id
		if got, err := Lease(o, false); err != nil || got.CNINetwork != want || got.AddressNamed != (want != "") {
			t.Errorf("held by container %q: network %q, named %v, %v", id, got.CNINetwork, got.AddressNamed, err)
		}
	}
}

// A report that cannot be read is none, and what it says stays as it is stored until the lease is written anew.
func TestUnreadableConflict(t *testing.T) {
	whole := v1.AddressConflict{
		MAC: "02:00:5e:10:00:01", Host: "10.0.0.11", ContainerID: "c", ReportedAt: "2026-01-02T03:04:05Z", Outcome: v1.ConflictKept,
	}
	for name, change := range map[string]func(*v1.AddressConflict){
		"host":    func(c *v1.AddressConflict) { c.Host = "node-1" },
		"time":    func(c *v1.AddressConflict) { c.ReportedAt = "yesterday" },
		"end":     func(c *v1.AddressConflict) { c.Until = "tomorrow" },
		"outcome": func(c *v1.AddressConflict) { c.Outcome = "Disputed" },
	} {
		c := whole
		change(&c)
		if got, ok := readConflict(&c); ok || got != nil {
			t.Errorf("%s: %+v", name, got)
		}
		o := Object(lease.Lease{Addr: netip.MustParseAddr("10.0.0.1"), Version: 1})
		o.Status.Conflict = &c
		if l, err := Lease(o, false); err != nil || !l.Foreign || l.Conflict != nil {
			t.Errorf("%s: %+v, %v", name, l, err)
		}
	}
	if got, ok := readConflict(&whole); !ok || got == nil {
		t.Error("the whole one cannot be read")
	}
}

// Every field of a lease takes part in the round trip: a new one must be added to drawLease too.
func TestLeaseRoundTripHasEveryField(t *testing.T) {
	seen := map[string]bool{}
	drawn := rapid.Custom(drawLease)
	for seed := range 1000 {
		nonZero(reflect.ValueOf(drawn.Example(seed)), "", seen)
	}
	all := map[string]bool{}
	every(reflect.TypeFor[lease.Lease](), "", all)
	delete(all, "Deleting")   // the API server's word, not ours
	delete(all, "Foreign")    // what a lease has no fields for
	delete(all, "Epoch")      // what this process knows
	delete(all, "FromSecond") // from where somebody looks: TestWrittenFromTheSecondAttachment
	if diff := cmp.Diff(all, seen); diff != "" {
		t.Errorf("fields of a lease -all +drawn:\n%s", diff)
	}
}

func every(typ reflect.Type, path string, into map[string]bool) {
	for f := range typ.Fields() {
		if f.Anonymous {
			every(f.Type, path, into)
			continue
		}
		into[path+f.Name] = true
	}
}

func nonZero(v reflect.Value, path string, into map[string]bool) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		switch {
		case f.Anonymous:
			nonZero(v.Field(i), path, into)
		case !v.Field(i).IsZero():
			into[path+f.Name] = true
		}
	}
}

// The fields that a merge sets are those of the types, by their JSON names.
func TestMergeKeepsWhatItDoesNotKnow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before, after := drawLease(t), drawLease(t)
		after.Addr = before.Addr
		body, err := json.Marshal(Object(before))
		if err != nil {
			t.Fatal(err)
		}
		var raw map[string]any
		if err := json.Unmarshal(body, &raw); err != nil {
			t.Fatal(err)
		}
		raw["spec"].(map[string]any)["tier"] = "gold"
		raw["status"].(map[string]any)["bond"] = map[string]any{"name": "x"}
		meta := raw["metadata"].(map[string]any)
		meta["labels"] = map[string]any{"team": "a"}
		meta["uid"] = "u"
		finalizers, _ := meta["finalizers"].([]any)
		meta["finalizers"] = append([]any{"example.org/other"}, finalizers...)
		if body, err = json.Marshal(raw); err != nil {
			t.Fatal(err)
		}
		merged, err := mergeInto(body, after)
		if err != nil {
			t.Fatal(err)
		}
		got, err := decodeLease(merged)
		if err != nil {
			t.Fatal(err)
		}
		want := after
		want.Foreign = true
		if diff := cmp.Diff(want, got, compareAddrs); diff != "" {
			t.Fatalf("the lease -want +got:\n%s", diff)
		}
		var kept struct {
			Metadata metav1.ObjectMeta `json:"metadata"`
			Spec     struct {
				Tier string `json:"tier"`
			} `json:"spec"`
			Status struct {
				Bond map[string]string `json:"bond"`
			} `json:"status"`
		}
		if err := json.Unmarshal(merged, &kept); err != nil {
			t.Fatal(err)
		}
		finalizersWanted := []string{"example.org/other"}
		if after.HeldFinalizer {
			finalizersWanted = append(finalizersWanted, v1.HeldFinalizer)
		}
		switch {
		case kept.Spec.Tier != "gold", kept.Status.Bond["name"] != "x", kept.Metadata.Labels["team"] != "a",
			kept.Metadata.UID != "u",
			!slices.Equal(kept.Metadata.Finalizers, finalizersWanted):
			t.Fatalf("something was lost: %s", merged)
		}
	})
}

// Objects that are not as they should be are read as far as they go, and keep what they have.
// Numbers of a later release stay digit by digit, also those that a float64 cannot hold.
func TestMergeKeepsNumbers(t *testing.T) {
	for _, number := range []string{
		"9007199254740993", "-9007199254740993", "18446744073709551615", "123456789012345678901234567890",
		"0", "-0", "1.50", "1e3", "1E+2", "-2.5e-7", "1e400",
	} {
		body := fmt.Sprintf(
			`{"metadata":{"name":"10.0.0.1","uid":"u","generation":%[1]s},"spec":{"bond":%[1]s},"status":{"bonds":[{"id":%[1]s}]}}`, number)
		merged, err := mergeInto([]byte(body), lease.Lease{
			Addr: netip.MustParseAddr("10.0.0.1"), Params: lease.Params{Pool: "p", Bits: 24},
		})
		if err != nil {
			t.Errorf("%s: %v", number, err)
			continue
		}
		for _, want := range []string{`"generation":` + number + `,`, `"bond":` + number + `,`, `"bonds":[{"id":` + number +
			`}]`, `"mask":24`} {
			if !bytes.Contains(merged, []byte(want)) {
				t.Errorf("%s is not in %s", want, merged)
			}
		}
	}
}

func TestStrangeObjects(t *testing.T) {
	const name, version = `"name":"10.0.0.9"`, `"resourceVersion":"7"`
	plain := lease.Lease{Addr: netip.MustParseAddr("10.0.0.9"), Version: 7}
	foreign := plain
	foreign.Foreign = true
	activeForeign := foreign
	activeForeign.State, activeForeign.ContainerID = lease.Active, "c"
	deleting := plain
	deleting.Deleting = true
	for what, test := range map[string]struct {
		body string
		want lease.Lease
		err  bool
	}{
		"bare":                 {body: `{"metadata":{` + name + `,` + version + `}}`, want: plain},
		"no status":            {body: `{"metadata":{` + name + `,` + version + `},"status":null}`, want: plain},
		"state of the future":  {body: `{"metadata":{` + name + `,` + version + `},"status":{"status":"Quarantined"}}`, want: plain},
		"time without meaning": {body: `{"metadata":{` + name + `,` + version + `},"status":{"updateTime":"yesterday"}}`, want: foreign},
		"start without meaning": {
			body: `{"metadata":{` + name + `,` + version +
				`},"status":{"status":"Active","containerID":"c","startedAt":"2020-13-45"}}`, want: activeForeign,
		},
		"host that is a name":     {body: `{"metadata":{` + name + `,` + version + `},"status":{"host":"node-7"}}`, want: foreign},
		"gateway that is a name":  {body: `{"metadata":{` + name + `,` + version + `},"spec":{"gateway":"gw"}}`, want: foreign},
		"unknown field":           {body: `{"metadata":{` + name + `,` + version + `},"status":{"new":{"a":[1]}}}`, want: foreign},
		"unknown field on top":    {body: `{"metadata":{` + name + `,` + version + `},"new":1}`, want: foreign},
		"unknown field, in front": {body: `{"new":{"x":{}},"metadata":{` + name + `,` + version + `}}`, want: foreign},
		"label":                   {body: `{"metadata":{` + name + `,` + version + `,"labels":{"a":"b"}}}`, want: foreign},
		"annotation":              {body: `{"metadata":{` + name + `,` + version + `,"annotations":{"a":"b"}}}`, want: foreign},
		"owner":                   {body: `{"metadata":{` + name + `,` + version + `,"ownerReferences":[{"name":"x"}]}}`, want: foreign},
		"another's finalizer":     {body: `{"metadata":{` + name + `,` + version + `,"finalizers":["a/b"]}}`, want: foreign},
		"being deleted":           {body: `{"metadata":{` + name + `,` + version + `,"deletionTimestamp":"2026-01-02T03:04:05Z"}}`, want: deleting},
		"name that is no address": {body: `{"metadata":{"name":"x",` + version + `}}`, err: true},
		"version that is none":    {body: `{"metadata":{` + name + `,"resourceVersion":"abc"}}`, err: true},
		"no version":              {body: `{"metadata":{` + name + `}}`, err: true},
		"a list":                  {body: `[]`, err: true},
		"cut short":               {body: `{"metadata":{` + name, err: true},
	} {
		t.Run(what, func(t *testing.T) {
			got, err := decodeLease([]byte(test.body))
			if test.err {
				if err == nil {
					t.Fatalf("read as %+v", got)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got, compareAddrs); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestReadList(t *testing.T) {
	item := func(name, version string) string {
		return `{"metadata":{"name":"` + name + `","resourceVersion":"` + version + `"}}`
	}
	for what, test := range map[string]struct {
		body    string
		names   []string
		version string
		err     bool
	}{
		"empty":              {body: `{"metadata":{"resourceVersion":"5"},"items":[]}`, version: "5"},
		"metadata last":      {body: `{"kind":"BCSNetIPList","items":[` + item("10.0.0.1", "3") + `],"metadata":{"resourceVersion":"5"}}`, names: []string{"10.0.0.1"}, version: "5"},
		"unknown fields":     {body: `{"new":[{}],"metadata":{"resourceVersion":"5","new":1},"items":[]}`, version: "5"},
		"an object too many": {body: `{"metadata":{"resourceVersion":"5"},"items":[` + item("strange", "3") + `,` + item("10.0.0.1", "3") + `]}`, names: []string{"10.0.0.1"}, version: "5"},
		"items null":         {body: `{"metadata":{"resourceVersion":"5"},"items":null}`, version: "5"},
		"cut in an item":     {body: `{"metadata":{"resourceVersion":"5"},"items":[` + item("10.0.0.1", "3") + `,{"metada`, names: []string{"10.0.0.1"}, err: true},
		"cut after an item":  {body: `{"metadata":{"resourceVersion":"5"},"items":[` + item("10.0.0.1", "3"), names: []string{"10.0.0.1"}, err: true},
		"cut at the end":     {body: `{"metadata":{"resourceVersion":"5"},"items":[]`, err: true},
		"nothing":            {body: ``, err: true},
		"no object":          {body: `[]`, err: true},
		"items no list":      {body: `{"items":{}}`, err: true},
	} {
		t.Run(what, func(t *testing.T) {
			var names []string
			meta, err := readList(bytes.NewReader([]byte(test.body)), func(l lease.Lease) error {
				names = append(names, l.Addr.String())
				return nil
			})
			if (err != nil) != test.err || !slices.Equal(names, test.names) || err == nil &&
				meta.ResourceVersion != test.version {
				t.Errorf("got %v, version %q, error %v; want %v, %q, error %v", names, meta.ResourceVersion, err, test.names,
					test.version, test.err)
			}
		})
	}
}

func TestParseTimeIsTheInverseOfFormatTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawTime.Draw(t, "time").In(time.FixedZone("away", rapid.IntRange(-43200, 43200).Draw(t, "zone")))
		got, ok := ParseTime(FormatTime(want))
		if !ok || !got.Equal(want) || got.Location() != time.UTC && !got.IsZero() {
			t.Fatalf("%v was read back as %v, %v", want, got, ok)
		}
	})
}

// The addresses of a pool that get an object are those that the pool's spec says.
func TestMaterialized(t *testing.T) {
	spec := func(m v1.Materialize, entries ...string) *v1.BCSNetPool {
		return &v1.BCSNetPool{Spec: v1.BCSNetPoolSpec{
			Net: "10.0.0.0", Mask: 16, Gateway: "10.0.0.1", AvailableIPs: entries, Materialize: m,
		}}
	}
	for what, test := range map[string]struct {
		pool *v1.BCSNetPool
		want int
	}{
		"single ones, on demand":   {spec(v1.MaterializeOnDemand, "10.0.0.9", "10.0.0.11", "10.0.1.0/24"), 2},
		"single ones alone":        {spec(v1.MaterializeOnDemand, "10.0.0.9"), 1},
		"small range, by itself":   {spec("", "10.0.0.9", "10.0.1.0/24"), 257},
		"large range, by itself":   {spec(v1.MaterializeAuto, "10.0.0.9", "10.0.16.0/20", "10.0.32.1"), 4098},
		"larger range, by itself":  {spec(v1.MaterializeAuto, "10.0.0.9", "10.0.16.0-10.0.32.0"), 1},
		"larger range, told to":    {spec(v1.MaterializeAlways, "10.0.0.9", "10.0.16.0-10.0.32.0"), 4098},
		"nothing":                  {spec(v1.MaterializeAlways), 0},
		"gateway is never counted": {spec(v1.MaterializeAlways, "10.0.0.1"), 0},
	} {
		t.Run(what, func(t *testing.T) {
			p := Pool(test.pool)
			if p.Problem != "" {
				t.Fatal(p.Problem)
			}
			addrs, _ := Materialized(test.pool, p.Plan)
			if got := len(addrs); got != test.want {
				t.Errorf("%d addresses get an object, want %d", got, test.want)
			}
		})
	}
}

// What the spec says wrongly stands in the pool's problem, and the pool keeps its name.
func TestPool(t *testing.T) {
	rack7 := map[string]string{"rack": "7"}
	rackSelector := selector{labels.SelectorFromSet(rack7)}
	good := v1.BCSNetPoolSpec{
		Net: "10.0.0.0", Mask: 24, Gateway: "10.0.0.1", AvailableIPs: []string{"10.0.0.9"}, Hosts: []string{"192.0.2.1"},
		HostSubnets: []string{"198.51.100.0/24"}, HostSelector: &metav1.LabelSelector{MatchLabels: rack7}, Namespaces: []string{"a"}, Network: "n", Priority: 3, VLAN: 7, MTU: 9000,
		Cordoned: true,
		Routes:   []v1.Route{{Dst: "10.1.0.0/16"}, {Dst: "10.2.0.0/16", GW: "10.0.0.2"}},
		DNS:      &v1.DNS{Nameservers: []string{"10.0.0.53"}, Domain: "d", Search: []string{"s"}, Options: []string{"o"}},
	}
	good.Parent = "blue"
	status := v1.BCSNetPoolStatus{Carved: []string{"10.0.0.20", "10.0.0.22-10.0.0.23", "nonsense"}}
	p := Pool(&v1.BCSNetPool{ObjectMeta: metav1.ObjectMeta{Name: "p", Generation: 4}, Spec: good, Status: status})
	if got := ipaddr.FormatSet(p.Carved); got != "10.0.0.20, 10.0.0.22-10.0.0.23" {
		t.Errorf("carved: %s", got)
	}
	want := ipam.Pool{
		Name: "p", Generation: 4, Parent: "blue", Network: "n", Priority: 3, Cordoned: true,
		Hosts:       map[netip.Addr]struct{}{netip.MustParseAddr("192.0.2.1"): {}},
		HostSubnets: ipam.Networks{netip.MustParsePrefix("198.51.100.0/24"): {}}, HostSelector: rackSelector,
		Namespaces: map[string]struct{}{"a": {}},
		Link: lease.Link{
			VLAN: 7, MTU: 9000,
			Routes: []lease.Route{
				{Dst: netip.MustParsePrefix("10.1.0.0/16")},
				{Dst: netip.MustParsePrefix("10.2.0.0/16"), GW: netip.MustParseAddr("10.0.0.2")},
			},
			DNS: &lease.DNS{Nameservers: []string{"10.0.0.53"}, Domain: "d", Search: []string{"s"}, Options: []string{"o"}},
		},
	}
	bySelector := cmp.Comparer(func(a, b ipam.Selector) bool {
		return (a == nil) == (b == nil) && (a == nil || a.String() == b.String())
	})
	if diff := cmp.Diff(want, p, compareAddrs, bySelector, cmp.Comparer(func(a, b netip.Prefix) bool { return a == b }),
		cmpopts.IgnoreFields(ipam.Pool{}, "Plan", "Carved", "Withheld")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for problem, change := range map[string]func(*v1.BCSNetPoolSpec){
		`hosts[1]: "node-1" is not an IP address`:  func(s *v1.BCSNetPoolSpec) { s.Hosts = append(s.Hosts, "node-1") },
		`hostSubnets[1]: "10.0.0.1" is not a CIDR`: func(s *v1.BCSNetPoolSpec) { s.HostSubnets = append(s.HostSubnets, "10.0.0.1") },
		`hostSelector: is empty`:                   func(s *v1.BCSNetPoolSpec) { s.HostSelector = &metav1.LabelSelector{} },
		`hostSelector: "Near" is not a valid label selector operator`: func(s *v1.BCSNetPoolSpec) {
			s.HostSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "rack", Operator: "Near"}}}
		},
		`routes[0]: "10.1.0.0" is not a CIDR`:                      func(s *v1.BCSNetPoolSpec) { s.Routes = []v1.Route{{Dst: "10.1.0.0"}} },
		`routes[0]: gw: "x" is not an IP address`:                  func(s *v1.BCSNetPoolSpec) { s.Routes = []v1.Route{{Dst: "10.1.0.0/16", GW: "x"}} },
		`gateway 10.0.1.1 is not in subnet 10.0.0.0/24`:            func(s *v1.BCSNetPoolSpec) { s.Gateway = "10.0.1.1" },
		`availableIPs[0]: "10.9.0.9" is not in subnet 10.0.0.0/24`: func(s *v1.BCSNetPoolSpec) { s.AvailableIPs = []string{"10.9.0.9"} },
	} {
		t.Run(problem, func(t *testing.T) {
			o := &v1.BCSNetPool{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: *good.DeepCopy()}
			change(&o.Spec)
			if p := Pool(o); p.Problem != problem || p.Name != "p" || p.Serves() {
				t.Errorf("pool %q: problem %q", p.Name, p.Problem)
			}
		})
	}
}

// The index takes a pool again when its spec, or what was handed over to it, has changed.
func TestKnown(t *testing.T) {
	object := func(change func(*v1.BCSNetPool)) *v1.BCSNetPool {
		o := &v1.BCSNetPool{ObjectMeta: metav1.ObjectMeta{Name: "p", Generation: 4}, Spec: v1.BCSNetPoolSpec{Parent: "blue"}}
		o.Status.Carved = []string{"10.0.0.20-10.0.0.21"}
		change(o)
		return o
	}
	known := Pool(object(func(*v1.BCSNetPool) {}))
	for name, tc := range map[string]struct {
		change func(*v1.BCSNetPool)
		want   bool
	}{
		"the same":        {func(*v1.BCSNetPool) {}, true},
		"in other words":  {func(o *v1.BCSNetPool) { o.Status.Carved = []string{"10.0.0.20", "10.0.0.21"} }, true},
		"other counts":    {func(o *v1.BCSNetPool) { o.Status.Active = 7 }, true},
		"another spec":    {func(o *v1.BCSNetPool) { o.Generation = 5 }, false},
		"made again":      {func(o *v1.BCSNetPool) { o.CreationTimestamp = metav1.Unix(7, 0) }, false},
		"more is carved":  {func(o *v1.BCSNetPool) { o.Status.Carved = []string{"10.0.0.20-10.0.0.22"} }, false},
		"all given back":  {func(o *v1.BCSNetPool) { o.Status.Carved = nil }, false},
		"without parent:": {func(o *v1.BCSNetPool) { o.Spec.Parent = "" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Known(known, object(tc.change)); got != tc.want {
				t.Errorf("known: %v, want %v", got, tc.want)
			}
		})
	}
}
