package doctor_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/doctor"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// group makes a child of pool blue, which has 10.1.0.20 to 10.1.0.29.
func group(name, available string, change ...func(*v1.BCSNetPool)) doctor.Pool {
	return pool(name, available, append([]func(*v1.BCSNetPool){func(p *v1.BCSNetPool) { p.Spec.Parent = "blue" }}, change...)...)
}

func carved(ranges ...string) func(*v1.BCSNetPool) {
	return func(p *v1.BCSNetPool) { p.Status.Carved = ranges }
}

// carving is a group that has waited for so long, for what the controller says.
func carving(since time.Duration, message string) func(*v1.BCSNetPool) {
	return func(p *v1.BCSNetPool) {
		p.Status.Conditions = []metav1.Condition{{
			Type: v1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1.ReasonCarving, Message: message,
			LastTransitionTime: metav1.NewTime(now.Add(-since)),
		}}
	}
}

func groupCases() map[string]checkCase {
	with := func(pools ...doctor.Pool) func(*doctor.Snapshot) {
		return func(s *doctor.Snapshot) { s.Pools = append(s.Pools, pools...) }
	}
	deleted := func(p *v1.BCSNetPool) { p.DeletionTimestamp = &metav1.Time{Time: now.Add(-time.Hour)} }
	// alone is a cluster in which nobody has an address of the parent, which was deleted an hour ago.
	alone := func(pools ...doctor.Pool) func(*doctor.Snapshot) {
		return func(s *doctor.Snapshot) {
			s.Pools = append([]doctor.Pool{pool("blue", "10.1.0.20-10.1.0.29", deleted)}, pools...)
			s.Leases, s.Pods = nil, nil
		}
	}
	draining := func(a, who string) string {
		return "lease-draining ip/" + a + ": pool blue no longer has it; " + who + ", held for 2d on 10.0.0.11"
	}
	const stops = "group-invalid pool/eng: its parent blue is being deleted, and waits for its children"
	return map[string]checkCase{
		"a group": {with(group("eng", "10.1.0.25-10.1.0.27", carved("10.1.0.25-10.1.0.27"))), nil},
		"a group without a parent": {with(group("eng", "10.1.0.25", func(p *v1.BCSNetPool) { p.Spec.Parent = "red" })),
			[]string{"group-invalid pool/eng: parent red does not exist"}},
		"a group that reaches beyond its parent": {with(group("eng", "10.1.0.29-10.1.0.30")), []string{
			"group-invalid pool/eng: bad ip-pool 10.1.0.29-10.1.0.30, EPG ip-pool must be a subset of network 10.1.0.0/24: " +
				"parent blue does not have 10.1.0.30",
		}},
		"groups that share an address": {with(
			group("eng", "10.1.0.25-10.1.0.26", carved("10.1.0.25-10.1.0.26")), group("ops", "10.1.0.26-10.1.0.27")),
			[]string{"group-invalid pool/ops: 10.1.0.26 is also in pool eng, a child of parent blue that comes first: " +
				"children never overlap"}},
		"a group that is wrong by itself": {with(group("eng", "10.2.0.25")),
			[]string{`pool-invalid pool/eng: availableIPs[0]: "10.2.0.25" is not in subnet 10.1.0.0/24`}},

		"a group on an address in use": {with(group("eng", "10.1.0.20-10.1.0.23")), []string{
			"group-stuck pool/eng: its addresses are still to be carved out of pool blue: it waits for 2 addresses of pool " +
				"blue: 10.1.0.20 (default/web-0 on host 10.0.0.11), 10.1.0.21 (vm-1 on host 10.0.0.11)",
			draining("10.1.0.20", "default/web-0"), draining("10.1.0.21", "vm-1"),
		}},
		"a group on an address that was just taken": {func(s *doctor.Snapshot) {
			s.Pools = append(s.Pools, group("eng", "10.1.0.20", carving(time.Minute, "it waits")))
			s.Leases[0].Updated = lately
		}, []string{"lease-draining ip/10.1.0.20: pool blue no longer has it; default/web-0, held for 30s on 10.0.0.11"}},
		"a group on an address that is set aside": {with(group("eng", "10.1.0.22", carving(time.Minute, "it waits"))), nil},
		"a group on an address that a claim keeps": {func(s *doctor.Snapshot) {
			s.Pools = append(s.Pools, group("eng", "10.1.0.29"))
			s.Leases = append(s.Leases, lease.Lease{
				Addr: addr("10.1.0.29"), Params: lease.Params{Pool: "blue"}, State: lease.Reserved, Updated: old,
				Retention: lease.Retention{Claim: "default/web", Fixed: true},
			})
		}, []string{"group-stuck pool/eng: its addresses are still to be carved out of pool blue: it waits for 1 address of " +
			"pool blue: 10.1.0.29 (kept for claim default/web)"}},
		"a group that has grown onto an address in use": {with(group("eng", "10.1.0.20, 10.1.0.25", carved("10.1.0.25"),
			func(p *v1.BCSNetPool) { p.Spec.AvailableIPs = []string{"10.1.0.20", "10.1.0.25"} })), []string{
			"group-stuck pool/eng: 10.1.0.20 is still to be carved out of pool blue: it waits for 1 address of pool " +
				"blue: 10.1.0.20 (default/web-0 on host 10.0.0.11)",
			draining("10.1.0.20", "default/web-0"),
		}},
		"a group that nothing is in the way of": {with(group("eng", "10.1.0.25", carving(time.Hour, "it waits"))),
			[]string{"group-stuck pool/eng: for 60m: it waits"}},
		"the same, lately":                 {with(group("eng", "10.1.0.25", carving(time.Minute, "it waits"))), nil},
		"a group that is being deleted":    {with(group("eng", "10.1.0.25", carving(time.Hour, "it waits"), deletedLately)), nil},
		"a group of a parent that is gone": {with(group("eng", "10.1.0.25", carved("10.1.0.25")), group("web", "10.1.0.26", carved("10.1.0.26"))), nil},

		"a deleted parent that waits for its child": {alone(group("eng", "10.1.0.25", carved("10.1.0.25"))), []string{stops,
			"stuck-deletion pool/blue: deleted 60m ago; it goes when its child is gone: eng"}},
		"one that waits for two": {alone(group("eng", "10.1.0.25", deletedLately), group("ops", "10.1.0.26", deletedLately)),
			[]string{"stuck-deletion pool/blue: deleted 60m ago; it goes when its children are gone: eng, ops"}},
		"one that waits for blocks": {func(s *doctor.Snapshot) {
			split := func(p *v1.BCSNetPool) { p.Spec.BlockSize = 30 }
			alone(pool("blue-10-1-0-20-30", "10.1.0.20/30", func(p *v1.BCSNetPool) {
				p.Spec.Parent, p.Spec.Namespaces = "blue", []string{"shop"}
			}))(s)
			s.Pools[0] = pool("blue", "10.1.0.20-10.1.0.29", deleted, split)
		}, []string{"stuck-deletion pool/blue: deleted 60m ago; it goes when 1 block is taken back: blue-10-1-0-20-30"}},
	}
}

func deletedLately(p *v1.BCSNetPool) { p.DeletionTimestamp = &metav1.Time{Time: lately} }

// TestNextStepOfGroups: what is suggested leads on from what the cause says.
func TestNextStepOfGroups(t *testing.T) {
	all := groupCases()
	for name, want := range map[string]string{
		"a group without a parent":                      "bcsnetctl pool edit eng",
		"a group on an address in use":                  "bcsnetctl ip describe 10.1.0.20",
		"a group that has grown onto an address in use": "bcsnetctl ip describe 10.1.0.20",
		"a group that nothing is in the way of":         "bcsnetctl pool describe eng",
		"one that waits for two":                        "bcsnetctl pool describe eng",
		"one that waits for blocks":                     "bcsnetctl pool tree blue",
	} {
		s := healthy()
		all[name].change(s)
		if diff := cmp.Diff(want, doctor.Examine(s, doctor.Checks()).Findings[0].Fix); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
}
