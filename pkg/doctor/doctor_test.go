package doctor_test

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/doctor"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

var (
	now = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	old = now.Add(-48 * time.Hour)
	// lately is too near to be judged.
	lately = now.Add(-30 * time.Second)

	errForbidden = errors.New("forbidden")
)

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

// pool reads a pool of 10.1.0.0/24 as the cluster would have it.
func pool(name, available string, change ...func(*v1.BCSNetPool)) doctor.Pool {
	o := &v1.BCSNetPool{
		ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 1, CreationTimestamp: metav1.NewTime(old)},
		Spec: v1.BCSNetPoolSpec{
			Net: "10.1.0.0", Mask: 24, Gateway: "10.1.0.1", Hosts: []string{"10.0.0.11"}, AvailableIPs: []string{available},
		},
		Status: v1.BCSNetPoolStatus{ObservedGeneration: 1},
	}
	for _, c := range change {
		c(o)
	}
	return doctor.Pool{Pool: store.Pool(o), Object: o}
}

func leased(a, podName string, change ...func(*lease.Lease)) lease.Lease {
	l := lease.Lease{
		Addr: addr(a), State: lease.Active, Params: lease.Params{Pool: "blue"}, Updated: old,
		Holder: lease.Holder{
			Host: addr("10.0.0.11"), ContainerID: "c-" + a, IfName: "eth0", Namespace: "default", PodName: podName,
			PodUID: "uid-" + podName,
		},
	}
	for _, c := range change {
		c(&l)
	}
	return l
}

func pod(name string, addrs ...string) workload.Pod {
	p := workload.Pod{Namespace: "default", Name: name, UID: "uid-" + name, Node: "node-1", Started: old}
	for _, a := range addrs {
		p.Addrs = append(p.Addrs, addr(a))
	}
	return p
}

// healthy returns a cluster without findings.
func healthy() *doctor.Snapshot {
	return &doctor.Snapshot{
		Now:        now,
		Missing:    map[doctor.Part]error{},
		CRDs:       []doctor.CRD{{Name: "bcsnetpools"}},
		Controller: doctor.Controller{Pods: 2, Ready: 2, Leader: "a", Renewed: now.Add(-time.Second), Term: 15 * time.Second},
		Pools:      []doctor.Pool{pool("blue", "10.1.0.20-10.1.0.29")},
		Leases: []lease.Lease{
			leased("10.1.0.20", "web-0"),
			leased("10.1.0.21", "", func(l *lease.Lease) { l.Owner, l.PodUID = "vm-1", "" }),
			leased("10.1.0.22", "", func(l *lease.Lease) { l.State, l.Holder = lease.Reserved, lease.Holder{} }),
		},
		Pods:     []workload.Pod{pod("web-0", "10.1.0.20"), pod("elsewhere", "192.0.2.1"), pod("new")},
		Claims:   []*v1.BCSNetIPClaim{{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}},
		Nodes:    []doctor.Node{{Name: "node-1", Addrs: []netip.Addr{addr("10.0.0.11")}, Ready: true}},
		Services: []netip.Prefix{netip.MustParsePrefix("172.16.0.0/16")},
	}
}

// found returns the findings in short: the check, the object, and the cause.
func found(s *doctor.Snapshot) (out []string) {
	for _, f := range doctor.Examine(s, doctor.Checks()).Findings {
		out = append(out, f.Check+" "+f.Object.String()+": "+f.Cause)
	}
	return out
}

func TestHealthy(t *testing.T) {
	r := doctor.Examine(healthy(), doctor.Checks())
	if len(r.Findings) > 0 || len(r.Skipped) > 0 || len(r.Ran) != len(doctor.Checks()) {
		t.Errorf("%+v, skipped %v, %d ran", r.Findings, r.Skipped, len(r.Ran))
	}
}

func TestMissingParts(t *testing.T) {
	s := &doctor.Snapshot{Now: now, Missing: map[doctor.Part]error{}, Nodes: healthy().Nodes}
	for _, p := range doctor.Reads(doctor.Checks()) {
		if p != doctor.PartNodes {
			s.Missing[p] = errForbidden
		}
	}
	r := doctor.Examine(s, doctor.Checks())
	var ran []string
	for _, c := range r.Ran {
		ran = append(ran, c.ID)
	}
	if diff := cmp.Diff([]string{"duplicate-host", "host-addresses-invalid", "node-foreign-conflist"}, ran); diff != "" {
		t.Error(diff)
	}
	skipped := 0
	for _, ids := range r.Skipped {
		skipped += len(ids)
	}
	if skipped+len(ran) != len(doctor.Checks()) || !slices.Contains(r.Skipped[doctor.PartAddresses], doctor.LeakPodGone) {
		t.Errorf("%d skipped: %v", skipped, r.Skipped)
	}
}

func TestSelect(t *testing.T) {
	for name, test := range map[string]struct {
		only, skip []string
		want       string
		unknown    string
	}{
		"a group":          {only: []string{"leaks"}, want: "leak-pod-gone leak-pod-ended leak-pod-replaced leak-pod-other-address"},
		"an ID":            {only: []string{"pool-overlap"}, want: "pool-overlap"},
		"less one":         {only: []string{"leaks"}, skip: []string{"leak-pod-gone"}, want: "leak-pod-ended leak-pod-replaced leak-pod-other-address"},
		"in their order":   {only: []string{"duplicate-host", "crds-missing"}, want: "crds-missing duplicate-host"},
		"nothing left":     {only: []string{"leaks"}, skip: []string{"leaks"}},
		"unknown":          {only: []string{"leak"}, unknown: "leak"},
		"unknown to skip":  {skip: []string{"leaks", "pols"}, unknown: "pols"},
		"all but a few":    {skip: []string{"leaks", "pools", "install", "addresses", "claims"}, want: "host-gone host-in-no-pool duplicate-host host-addresses-invalid node-foreign-conflist host-not-a-node host-subnet-empty host-selector-empty node-in-no-pool"},
		"a title is no ID": {only: []string{"no controller runs"}, unknown: "no controller runs"},
	} {
		t.Run(name, func(t *testing.T) {
			checks, unknown := doctor.Select(test.only, test.skip)
			var got []string
			for _, c := range checks {
				got = append(got, c.ID)
			}
			if diff := cmp.Diff(test.want, strings.Join(got, " ")); diff != "" || unknown != test.unknown {
				t.Errorf("unknown %q, want %q; %s", unknown, test.unknown, diff)
			}
		})
	}
}

// TestFindingsAreWhole: whatever is found says everything that people need, and what the check says.
func TestFindingsAreWhole(t *testing.T) {
	checks := map[string]doctor.Check{}
	for _, c := range doctor.Checks() {
		if checks[c.ID].ID != "" {
			t.Errorf("two checks are called %s", c.ID)
		}
		checks[c.ID] = c
		for what, text := range map[string]string{
			"group": string(c.Group), "title": c.Title, "meaning": c.Meaning, "impact": c.Impact, "remedy": c.Remedy,
		} {
			if text == "" {
				t.Errorf("%s has no %s", c.ID, what)
			}
		}
		if len(c.Needs) == 0 || !slices.Contains(doctor.Severities(), c.Severity) {
			t.Errorf("%s needs %v, severity %q", c.ID, c.Needs, c.Severity)
		}
	}
	seen := map[string]bool{}
	for name, test := range cases() {
		s := healthy()
		test.change(s)
		rank := 0
		for _, f := range doctor.Examine(s, doctor.Checks()).Findings {
			c := checks[f.Check]
			seen[f.Check] = true
			if f.Group != c.Group || f.Severity != c.Severity || f.Impact != c.Impact || f.Cause == "" || f.Fix == "" ||
				f.Object.Name == "" {
				t.Errorf("%s: %+v", name, f)
			}
			if f.Release != nil != (f.Group == doctor.GroupLeaks && f.Check != doctor.LeakPodOtherAddress) {
				t.Errorf("%s: %s: what to release is %v", name, f.Check, f.Release)
			}
			if r := slices.Index(doctor.Severities(), f.Severity); r < rank {
				t.Errorf("%s: %s comes after what is less grave", name, f.Check)
			} else {
				rank = r
			}
		}
	}
	for id := range checks {
		if !seen[id] {
			t.Errorf("no case finds %s", id)
		}
	}
}

func TestSeverity(t *testing.T) {
	if !doctor.Error.AtLeast(doctor.Warning) || !doctor.Info.AtLeast(doctor.Info) || doctor.Info.AtLeast(doctor.Warning) {
		t.Error("the order is error, warning, info")
	}
}

func ready(status metav1.ConditionStatus, reason, message string) func(*v1.BCSNetPool) {
	return func(p *v1.BCSNetPool) {
		meta.SetStatusCondition(&p.Status.Conditions,
			metav1.Condition{Type: v1.ConditionReady, Status: status, Reason: reason, Message: message})
	}
}
