package workload

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go4.org/netipx"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

// Keys as their systems' documents write them: the table is not its own witness.
const (
	ownFamilyPolicy = "networkextension.bkbcs.tencent.com/ip-family-policy"
	ownFamilies     = "networkextension.bkbcs.tencent.com/ip-families"
	ownIP           = "networkextension.bkbcs.tencent.com/ip"
	ownPool         = "networkextension.bkbcs.tencent.com/pool"
	ownClaim        = "networkextension.bkbcs.tencent.com/claim"
	ownRelease      = "networkextension.bkbcs.tencent.com/release-policy"
	ownKeep         = "networkextension.bkbcs.tencent.com/keep"
	fixedIP         = "netservicecontroller.bkbcs.tencent.com"
	keepFixed       = "keepduration.netservicecontroller.bkbcs.tencent.com"
	primaryKey      = "primarykey.netservicecontroller.bkbcs.tencent.com"
	ipClaim         = "netservicecontroller.bkbcs.tencent.com/ipclaim"
	galaxy          = "k8s.v1.cni.galaxy.io/release-policy"
	galaxyArgs      = "k8s.v1.cni.galaxy.io/args"
	eniPool         = "tke.cloud.tencent.com/eni-ip-pool"
	keeperIP        = "ipkeeper.generals.space/ip_address"
	keeperPool      = "ipkeeper.generals.space/ip_pool"
	keeperGatew     = "ipkeeper.generals.space/gateway"
)

type notes = map[string]string

// The workloads of the tests, each with a pod of it.
type sample struct {
	own owned
	pod Pod
	// claims are those that somebody made for the workload.
	claims []string
}

func of(group, kind, name, prefix string, n nature, pod string) sample {
	return sample{
		own: owned{
			Workload: Workload{Group: group, Kind: kind, Namespace: "shop", Name: name, UID: "u"}, nature: n,
			prefix: prefix,
		},
		pod: Pod{Namespace: "shop", Name: pod, UID: "p", Controller: Owner{Group: group, Kind: kind, Name: name,
			UID: "u"}},
	}
}

func deployment() sample {
	return of("apps", "Deployment", "web", "deploy", app, "web-5d4f8c7b9-x2x4z")
}
func statefulSet() sample { return of("apps", "StatefulSet", "db", "sts", app, "db-1") }
func daemonSet() sample   { return of("apps", "DaemonSet", "agent", "ds", daemon, "agent-x2x4z") }
func job() sample         { return of("batch", "Job", "once", "job", task, "once-x2x4z") }
func cloneSet() sample    { return of("apps.kruise.io", "CloneSet", "web", "cloneset", app, "web-x2x4z") }
func tapp() sample        { return of("apps.tkestack.io", "TApp", "game", "tapp", app, "game-12") }
func vm() sample {
	return of("kubevirt.io", "VirtualMachine", "win", "vm", machine, "virt-launcher-win-x2x4z")
}
func operators() sample { return of("example.org", "Broker", "b", "broker", foreign, "b-0") }

func barePod() sample {
	s := of("", "Pod", "devops", "pod", bare, "devops")
	s.pod.Controller = Owner{}
	return s
}

func generatedPod() sample {
	s := barePod()
	s.pod.Generated = true
	return s
}

// on puts annotations on the pod.
func (s sample) on(pod notes) sample { s.pod.Annotations = pod; return s }

// having has somebody make claims for the workload.
func (s sample) having(claims ...string) sample { s.claims = claims; return s }

// itself puts annotations on the workload.
func (s sample) itself(workload notes) sample { s.own.annotations = workload; return s }

// decide is what the annotations come to, as it is found the second time.
func (s sample) decide(namespace notes) (Policy, error) {
	var known readings
	_, _ = s.decideIn(nil, namespace, &known) // the second one counts
	return s.decideIn(nil, namespace, &known)
}

// decideIn is what the annotations come to beside the pools of an index, if there is one.
func (s sample) decideIn(x *index.Index, namespace notes, known *readings) (Policy, error) {
	return decide(policyBuilder{pod: s.pod, readings: known}, s.own, s.claims, namespace, "bcsnet-system", x)
}

func set(t testing.TB, ranges ...string) *netipx.IPSet {
	t.Helper()
	var b netipx.IPSetBuilder
	for _, text := range ranges {
		r, err := ipaddr.ParseRange(text)
		if err != nil {
			t.Fatal(err)
		}
		b.AddRange(r)
	}
	s, err := b.IPSet()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func same() cmp.Option {
	return cmp.Options{
		cmp.Comparer(func(a, b *netipx.IPSet) bool { return a.Equal(b) }),
		cmpopts.EquateComparable(netip.Addr{}),
		cmpopts.IgnoreFields(Policy{}, "Workload", "Sources", "PodWideClaim"),
		cmpopts.EquateEmpty(),
	}
}

// The policy of each kind of workload, as the table of CONTRACTS has it for galaxy's annotations; our own mean the
// same. Refused is "!".
func TestPolicyTable(t *testing.T) {
	for name, row := range map[string]struct {
		sample
		claim, identity         string
		immutable, never, timed ReleasePolicy
		shared                  string // identity in a shared pool
	}{
		"Deployment": {deployment(), "shop/deploy-web", "", ReleaseImmutable, ReleaseNever, ReleaseTimed, ""},
		"StatefulSet": {statefulSet(), "shop/sts-db", "db-1", ReleaseImmutable, ReleaseNever, ReleaseTimed,
			"shop/db-1"},
		"numbered by scale": {tapp(), "shop/tapp-game", "game-12", ReleaseImmutable, ReleaseNever, ReleaseTimed,
			"shop/game-12"},
		"random by scale": {cloneSet(), "shop/cloneset-web", "", ReleaseImmutable, ReleaseNever, ReleaseTimed, ""},
		"virtual machine": {vm(), "shop/vm-win", "win", ReleaseImmutable, ReleaseNever, ReleaseTimed, "shop/win"},
		"bare pod":        {barePod(), "shop/pod-devops", "devops", "!", ReleaseNever, ReleaseTimed, ""},
		"generated pod":   {generatedPod(), "shop/pod-devops", "devops", "!", "!", ReleaseTimed, ""},
		"Job":             {job(), "shop/job-once", "", "!", "!", ReleaseTimed, ""},
		"DaemonSet":       {daemonSet(), "shop/ds-agent", "", "!", "!", ReleaseTimed, ""},
		"of an operator":  {operators(), "shop/broker-b", "", "!", "!", ReleaseTimed, ""},
	} {
		t.Run(name, func(t *testing.T) {
			for _, tc := range []struct {
				key, value string
				want       ReleasePolicy
			}{
				{galaxy, "", ReleaseWithPod},
				{galaxy, "immutable", row.immutable},
				{galaxy, "never", row.never},
				{ownRelease, "with-pod", ReleaseWithPod},
				{ownRelease, "immutable", row.immutable},
				{ownRelease, "never", row.never},
				{ownRelease, "timed", row.timed},
				{ownRelease, "WithPod", ReleaseWithPod},
				{ownRelease, "With-Pod", ReleaseWithPod},
				{ownRelease, "Immutable", row.immutable},
				{ownRelease, "NEVER", row.never},
				{galaxy, "Immutable", row.immutable},
				{fixedIP, "fixed-ip", row.timed},
			} {
				want := Policy{Release: tc.want}
				if tc.want != ReleaseWithPod {
					want.Claim, want.Identity = row.claim, row.identity
				}
				if tc.want == ReleaseTimed {
					want.Keep = 48 * time.Hour
				}
				got, err := row.on(notes{tc.key: tc.value}).decide(nil)
				if tc.want == "!" {
					if why, ok := errors.AsType[*ipam.Refusal](err); !ok ||
						why.Reason != ipam.ReasonInvalidAnnotation ||
						!strings.Contains(why.Message, tc.value) || why.Hint == "" {
						t.Errorf("%s=%q: %+v, %v; want a refusal", tc.key, tc.value, got, err)
					}
					// As a default of the namespace it is no reason to refuse anybody.
					if got, err := row.decide(notes{tc.key: tc.value}); err != nil || got.Release != ReleaseWithPod ||
						len(got.Sources) != 0 {
						t.Errorf("%s=%q on the namespace: %+v, %v", tc.key, tc.value, got, err)
					}
					continue
				}
				if diff := cmp.Diff(want, got, same()); err != nil || diff != "" {
					t.Errorf("%s=%q: %v, -want +got:\n%s", tc.key, tc.value, err, diff)
				}
			}
			got, err := row.on(notes{eniPool: "blue", galaxy: "immutable"}).decide(nil)
			want := Policy{Claim: "bcsnet-system/pool-blue", Shared: "blue", Release: ReleaseNever,
				Identity: row.shared}
			if diff := cmp.Diff(want, got, same()); err != nil || diff != "" {
				t.Errorf("shared: %v, -want +got:\n%s", err, diff)
			}
		})
	}
}

// What annotations come to, on whichever object they stand.
func TestPolicy(t *testing.T) {
	timed := func(keep time.Duration) Policy {
		return Policy{Release: ReleaseTimed, Keep: keep, Claim: "shop/sts-db", Identity: "db-1"}
	}
	for name, tc := range map[string]struct {
		sample
		namespace notes
		want      Policy
	}{
		"nothing": {sample: deployment(), want: Policy{Release: ReleaseWithPod}},
		"of other systems": {sample: deployment().on(notes{"example.org/ip": "x",
			"k8s.v1.cni.cncf.io/networks": "galaxy-k8s-vlan"}), want: Policy{Release: ReleaseWithPod}},
		"empty": {sample: deployment().on(notes{ownIP: "", galaxy: " ", eniPool: "",
			fixedIP: ""}), want: Policy{Release: ReleaseWithPod}},
		"fixed for a while": {sample: statefulSet().on(notes{fixedIP: "fixed-ip",
			keepFixed: "1h30m"}), want: timed(90 * time.Minute)},
		"a duration alone does nothing": {sample: statefulSet().on(notes{keepFixed: "1h"}),
			want: Policy{Release: ReleaseWithPod}},
		"our duration alone": {sample: statefulSet().on(notes{ownKeep: "1h"}),
			want: timed(time.Hour)},
		"our duration on the workload": {sample: statefulSet().itself(notes{ownKeep: "1h"}),
			want: timed(time.Hour)},
		"duration for a default": {sample: statefulSet().on(notes{ownKeep: "1h"}),
			namespace: notes{ownRelease: "never"}, want: timed(time.Hour)},
		"default duration for a policy": {sample: statefulSet().on(notes{ownRelease: "never"}),
			namespace: notes{ownKeep: "1h"}, want: Policy{Release: ReleaseNever, Claim: "shop/sts-db",
				Identity: "db-1"}},
		"policy and duration of the namespace": {sample: statefulSet(), namespace: notes{ownRelease: "timed",
			ownKeep: "2h"}, want: timed(2 * time.Hour)},
		"not the default": {sample: statefulSet().on(notes{ownRelease: "with-pod"}),
			namespace: notes{ownRelease: "never"}, want: Policy{Release: ReleaseWithPod}},
		"only ours on the namespace": {sample: statefulSet(), namespace: notes{galaxy: "never",
			fixedIP: "fixed-ip", keeperIP: "10.0.0.1/24"}, want: Policy{Release: ReleaseWithPod}},
		"the pod before its workload": {sample: statefulSet().on(notes{ownRelease: "never"}).itself(notes{galaxy: "immutable"}), want: Policy{Release: ReleaseNever, Claim: "shop/sts-db", Identity: "db-1"}},
		"two that agree": {sample: statefulSet().on(notes{ownRelease: "never",
			galaxy: "never"}), want: Policy{Release: ReleaseNever, Claim: "shop/sts-db", Identity: "db-1"}},
		"primary key": {sample: statefulSet().on(notes{fixedIP: "fixed-ip",
			primaryKey: "game/one"}), want: Policy{Release: ReleaseTimed, Keep: 48 * time.Hour, Claim: "shop/sts-db",
			Identity: "game/one"}},
		"primary key of a bare pod": {sample: barePod().on(notes{galaxy: "never", primaryKey: "one"}),
			want: Policy{Release: ReleaseNever, Claim: "shop/pod-one", Identity: "one"}},
		"primary key of a Job's pod": {sample: job().on(notes{galaxy: "never", primaryKey: "one"}),
			want: Policy{Release: ReleaseNever, Claim: "shop/job-once", Identity: "one"}},
		"primary key alone": {sample: deployment().on(notes{primaryKey: "one"}),
			want: Policy{Release: ReleaseWithPod, Identity: "one"}},
		"primary key in a shared pool": {sample: deployment().on(notes{eniPool: "blue", primaryKey: "one"}),
			want: Policy{Release: ReleaseNever, Claim: "bcsnet-system/pool-blue", Shared: "blue",
				Identity: "shop/one"}},
		"our address": {sample: deployment().on(notes{ownIP: "10.0.0.5, 10.0.0.7~10.0.0.9 ,2001:db8::5"}),
			want: Policy{Release: ReleaseWithPod, Sets: []*netipx.IPSet{set(t, "10.0.0.5", "10.0.0.7-10.0.0.9"), set(t,
				"2001:db8::5")}}},
		"our addresses, kept": {sample: deployment().on(notes{ownIP: "10.0.0.5-10.0.0.9",
			ownRelease: "immutable"}), want: Policy{Release: ReleaseImmutable, Claim: "shop/deploy-web",
			Sets: []*netipx.IPSet{set(t, "10.0.0.5-10.0.0.9")}}},
		"both families, kept": {sample: deployment().on(notes{ownIP: "10.0.0.0/28,2001:db8::/64",
			ownRelease: "immutable"}), want: Policy{Release: ReleaseImmutable, Claim: "shop/deploy-web",
			Sets: []*netipx.IPSet{set(t, "10.0.0.0/28"), set(t, "2001:db8::/64")}}},
		"pool": {sample: deployment().on(notes{ownPool: "blue"}),
			want: Policy{Release: ReleaseWithPod, Pools: []string{"blue"}}},
		"default pool": {sample: deployment(), namespace: notes{ownPool: "blue"},
			want: Policy{Release: ReleaseWithPod, Pools: []string{"blue"}}},
		"default pool and an address": {sample: deployment().on(notes{ownIP: "10.0.0.5"}),
			namespace: notes{ownPool: "blue"}, want: Policy{Release: ReleaseWithPod, Pools: []string{"blue"},
				Sets: []*netipx.IPSet{set(t, "10.0.0.5")}}},
		"claim": {sample: deployment().on(notes{ownClaim: "mine"}),
			namespace: notes{ownPool: "blue"}, want: Policy{Claim: "shop/mine", Named: true}},
		"claim of a numbered pod": {sample: statefulSet().on(notes{ipClaim: "mine", ownClaim: "mine"}),
			want: Policy{Claim: "shop/mine", Named: true, Identity: "db-1"}},
		"claim and policy": {sample: deployment().on(notes{ipClaim: "mine",
			fixedIP: "fixed-ip"}), want: Policy{Claim: "shop/mine", Named: true, Release: ReleaseTimed,
			Keep: 48 * time.Hour}},
		"claim of another namespace": {sample: statefulSet().on(notes{ownClaim: "common/mine"}),
			want: Policy{Claim: "common/mine", Named: true, Identity: "shop/db-1"}},
		"claim with its own namespace": {sample: statefulSet().on(notes{ownClaim: "shop/mine"}),
			want: Policy{Claim: "shop/mine", Named: true, Identity: "db-1"}},
		"claim and a default policy": {sample: deployment().on(notes{ownClaim: "mine"}),
			namespace: notes{ownRelease: "timed", ownKeep: "1h"}, want: Policy{Claim: "shop/mine", Named: true}},
		"claim and pool": {sample: deployment().on(notes{ownClaim: "mine", ownPool: "blue"}),
			want: Policy{Claim: "shop/mine", Named: true, Pools: []string{"blue"}}},
		"default claim": {sample: deployment(), namespace: notes{ownClaim: "all"},
			want: Policy{Claim: "shop/all", Named: true}},
		"claim for the workload": {sample: deployment().having("mine"),
			want: Policy{Claim: "shop/mine", Named: true}},
		"claim for a numbered pod's workload": {sample: statefulSet().having("mine"),
			want: Policy{Claim: "shop/mine", Named: true, Identity: "db-1"}},
		"claim for a bare pod": {sample: barePod().having("mine"), want: Policy{Claim: "shop/mine",
			Named: true, Identity: "devops"}},
		"claim for the workload, another named": {sample: deployment().on(notes{ownClaim: "named"}).having("mine",
			"other"), want: Policy{Claim: "shop/named", Named: true}},
		"claim for the workload, which names one": {sample: deployment().itself(notes{ownClaim: "named"}).having("mine"), want: Policy{Claim: "shop/named", Named: true}},
		"claim for the workload, shared pool": {sample: deployment().on(notes{eniPool: "blue"}).having("mine"),
			want: Policy{Release: ReleaseNever, Claim: "bcsnet-system/pool-blue", Shared: "blue"}},
		"claim for the workload and defaults": {sample: deployment().having("mine"),
			namespace: notes{ownClaim: "all", ownPool: "blue", ownRelease: "never"}, want: Policy{Claim: "shop/mine",
				Named: true}},
		"claim for the workload and a policy": {sample: deployment().on(notes{ownRelease: "never"}).having("mine"),
			want: Policy{Claim: "shop/mine", Named: true, Release: ReleaseNever}},
		"claim for the workload and a pool": {sample: deployment().on(notes{ownPool: "blue"}).having("mine"),
			want: Policy{Claim: "shop/mine", Named: true, Pools: []string{"blue"}}},
		"default claim, own pool": {sample: deployment().on(notes{ownPool: "blue"}),
			namespace: notes{ownClaim: "all"}, want: Policy{Release: ReleaseWithPod, Pools: []string{"blue"}}},
		"default claim, shared pool": {sample: deployment().on(notes{eniPool: "blue"}),
			namespace: notes{ownClaim: "all"}, want: Policy{Release: ReleaseNever, Claim: "bcsnet-system/pool-blue",
				Shared: "blue"}},
		"ranges":                         {sample: deployment().on(notes{galaxyArgs: `{"request_ip_range":[["10.0.0.2~10.0.0.30"],["10.0.0.60"]],"common":{"ipinfos":[{"ip":"10.0.0.3/24"}]}}`}), want: Policy{Release: ReleaseWithPod, Sets: []*netipx.IPSet{set(t, "10.0.0.2-10.0.0.30"), set(t, "10.0.0.60")}}},
		"ranges of a numbered pod, kept": {sample: statefulSet().on(notes{galaxyArgs: `{"request_ip_range":[["10.0.0.2~10.0.0.30"],["10.0.0.60"]]}`, galaxy: "immutable"}), want: Policy{Release: ReleaseImmutable, Claim: "shop/sts-db", Identity: "db-1", Sets: []*netipx.IPSet{set(t, "10.0.0.2-10.0.0.30"), set(t, "10.0.0.60")}}},
		"arguments without ranges":       {sample: deployment().on(notes{galaxyArgs: `{"common":{}}`}), want: Policy{Release: ReleaseWithPod}},
		"address of a bare pod": {sample: barePod().on(notes{keeperIP: "172.16.91.181/24", keeperGatew: "172.16.91.2"}),
			want: Policy{
				Release: ReleaseWithPod, Claim: "shop/pod-devops", Identity: "devops", Mask: 24,
				Gateway: netip.MustParseAddr("172.16.91.2"), Sets: []*netipx.IPSet{set(t, "172.16.91.181")},
			}},
		"list on a Deployment": {sample: deployment().itself(notes{keeperPool: "172.16.91.142/24, " +
			"172.16.91.143/24,172.16.91.144/24"}),
			want: Policy{
				Release: ReleaseImmutable, Claim: "shop/deploy-web", Mask: 24,
				Sets: []*netipx.IPSet{set(t, "172.16.91.142-172.16.91.144")},
			}},
		"list on a DaemonSet": {sample: daemonSet().itself(notes{keeperPool: "172.16.91.142/24"}),
			want: Policy{
				Release: ReleaseImmutable, Claim: "shop/ds-agent", Mask: 24,
				Sets: []*netipx.IPSet{set(t, "172.16.91.142")},
			}},
		"one of the list": {sample: deployment().on(notes{ownIP: "172.16.91.143"}).itself(notes{keeperPool: "172.16.91.142/24,172.16.91.143/24"}),
			want: Policy{
				Release: ReleaseImmutable, Claim: "shop/deploy-web", Mask: 24,
				Sets: []*netipx.IPSet{set(t, "172.16.91.143")},
			}},
		"list and a policy": {sample: deployment().on(notes{galaxy: "never"}).itself(notes{keeperPool: "172.16.91.142/24"}),
			want: Policy{
				Release: ReleaseNever, Claim: "shop/deploy-web", Mask: 24,
				Sets: []*netipx.IPSet{set(t, "172.16.91.142")},
			}},
		"families": {sample: deployment().on(notes{ownFamilies: "IPv6, IPv4", ownFamilyPolicy: "PreferDualStack"}),
			want: Policy{
				Release: ReleaseWithPod, Families: ipam.Families{Policy: ipam.PreferDualStack,
					Order: []ipaddr.Family{ipaddr.IPv6, ipaddr.IPv4}},
			}},
		"a family policy for a default": {sample: deployment().on(notes{ownFamilyPolicy: "SingleStack"}),
			namespace: notes{ownFamilyPolicy: "RequireDualStack", ownFamilies: "IPv6"}, want: Policy{
				Release: ReleaseWithPod, Families: ipam.Families{Policy: ipam.SingleStack,
					Order: []ipaddr.Family{ipaddr.IPv6}},
			}},
		"gateway alone": {sample: deployment().on(notes{keeperGatew: "10.0.0.2"}),
			want: Policy{Release: ReleaseWithPod, Gateway: netip.MustParseAddr("10.0.0.2")}},
		"a shared name": {sample: deployment().on(notes{eniPool: "蓝 Blue"}), want: Policy{Release: ReleaseNever,
			Shared: "蓝 Blue", Claim: "bcsnet-system/" + claimName("pool", "蓝 Blue")}},
		"shared and fixed": {sample: deployment().on(notes{eniPool: "blue", fixedIP: "fixed-ip", keepFixed: "1h"}),
			want: Policy{Release: ReleaseNever, Shared: "blue", Claim: "bcsnet-system/pool-blue"}},
		"shared for a Job": {sample: job().on(notes{eniPool: "blue"}), want: Policy{Release: ReleaseNever,
			Shared: "blue", Claim: "bcsnet-system/pool-blue"}},
		"primary key twice": {sample: statefulSet().on(notes{primaryKey: "a",
			galaxy: "never"}).itself(notes{primaryKey: "b"}), want: Policy{Release: ReleaseNever, Claim: "shop/sts-db",
			Identity: "a"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := tc.decide(tc.namespace)
			if diff := cmp.Diff(tc.want, got, same()); err != nil || diff != "" {
				t.Errorf("%v, -want +got:\n%s", err, diff)
			}
			if got.Workload != tc.own.Workload {
				t.Errorf("workload %v", got.Workload)
			}
			for _, s := range got.Sources {
				if s.Object == "" || s.Key == "" || s.Value == "" || s.Gave == "" {
					t.Errorf("source %+v", s)
				}
			}
		})
	}
}
