package claim

import (
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// What the status of an IPAMClaim says of the addresses of its claim.
func TestIPAMClaimStatus(t *testing.T) {
	now := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	of := func(addr string, state lease.State, pod string) lease.Lease {
		l := lease.Lease{Addr: netip.MustParseAddr(addr), State: state}
		l.Bits, l.Pool, l.PodName, l.PodPrimaryKey = 24, "blue", pod, "vm.a"
		if l.Addr.Is6() {
			l.Bits = 64
		}
		return l
	}
	condition := func(status metav1.ConditionStatus, reason, message string) metav1.Condition {
		return metav1.Condition{
			Type: "IPsAllocated", Status: status, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(now),
		}
	}
	full := Problem{"PoolExhausted", "no address"}
	others := metav1.Condition{Type: "Theirs", Status: metav1.ConditionTrue, Reason: "X"}
	allocated := condition(metav1.ConditionTrue, "SuccessfulAllocation", "10.0.0.5/24 of pool blue")
	for name, tc := range map[string]struct {
		before  workload.IPAMClaimStatus
		leases  []lease.Lease
		refused *Problem
		want    workload.IPAMClaimStatus
	}{
		"nobody has asked": {},
		"in use": {
			leases: []lease.Lease{of("10.0.0.5", lease.Active, "p")},
			want: workload.IPAMClaimStatus{
				IPs: []string{"10.0.0.5/24"}, OwnerPod: "p", Conditions: []metav1.Condition{allocated},
			},
		},
		"kept": {
			leases: []lease.Lease{of("10.0.0.5", lease.Reserved, "p")},
			want:   workload.IPAMClaimStatus{IPs: []string{"10.0.0.5/24"}, Conditions: []metav1.Condition{allocated}},
		},
		"of both families, IPv4 first": {
			leases: []lease.Lease{of("fd00::5", lease.Active, "p"), of("10.0.0.5", lease.Active, "p")},
			want: workload.IPAMClaimStatus{
				IPs: []string{"10.0.0.5/24", "fd00::5/64"}, OwnerPod: "p", Conditions: []metav1.Condition{
					condition(metav1.ConditionTrue, "SuccessfulAllocation", "10.0.0.5/24 and fd00::5/64 of pool blue"),
				},
			},
		},
		"of two of a family the one in use": {
			leases: []lease.Lease{of("10.0.0.4", lease.Reserved, "q"), of("10.0.0.5", lease.Active, "p")},
			want: workload.IPAMClaimStatus{
				IPs: []string{"10.0.0.5/24"}, OwnerPod: "p", Conditions: []metav1.Condition{allocated},
			},
		},
		"not that of another key": {
			leases: []lease.Lease{func() lease.Lease {
				l := of("10.0.0.5", lease.Active, "p")
				l.PodPrimaryKey = "other"
				return l
			}()},
		},
		"refused": {
			refused: &full,
			want:    workload.IPAMClaimStatus{Conditions: []metav1.Condition{condition(metav1.ConditionFalse, full.Reason, full.Message)}},
		},
		"refused while another pod has it": {
			leases: []lease.Lease{of("10.0.0.5", lease.Active, "p")}, refused: &full,
			want: workload.IPAMClaimStatus{
				IPs: []string{"10.0.0.5/24"}, OwnerPod: "p", Conditions: []metav1.Condition{allocated},
			},
		},
		"given back": {
			before: workload.IPAMClaimStatus{
				IPs: []string{"10.0.0.5/24"}, OwnerPod: "p", Conditions: []metav1.Condition{others, allocated},
			},
			want: workload.IPAMClaimStatus{Conditions: []metav1.Condition{others, condition(metav1.ConditionFalse, "Released",
				"the addresses were released; the next pod gets others")}},
		},
		"somebody else's": {
			before: workload.IPAMClaimStatus{IPs: []string{"192.168.0.5/24", "x"}, OwnerPod: "p"}, refused: &full,
			want: workload.IPAMClaimStatus{IPs: []string{"192.168.0.5/24", "x"}, OwnerPod: "p"},
		},
		"somebody else's until it has one of ours": {
			before: workload.IPAMClaimStatus{IPs: []string{"192.168.0.5/24"}, Conditions: []metav1.Condition{others}},
			leases: []lease.Lease{of("10.0.0.5", lease.Active, "p")},
			want: workload.IPAMClaimStatus{
				IPs: []string{"10.0.0.5/24"}, OwnerPod: "p", Conditions: []metav1.Condition{others, allocated},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := &workload.IPAMClaim{Workload: workload.Workload{Namespace: "shop", Name: "vm.a"}, Status: tc.before}
			ours := func(a netip.Addr) bool { return netip.MustParsePrefix("10.0.0.0/24").Contains(a) }
			got := IPAMClaimStatus(c, tc.leases, tc.refused, ours, now)
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
			c.Status = got
			later := IPAMClaimStatus(c, tc.leases, tc.refused, ours, now.Add(time.Hour))
			if !later.Equal(got) {
				t.Errorf("an hour later it is another: %+v, %+v", got, later)
			}
		})
	}
}
