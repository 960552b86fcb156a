package history

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/bcsnet/bcsnet/api/v1"
)

func TestFields(t *testing.T) {
	base := v1.BCSNetPoolSpec{Net: "10.1.0.0", Mask: 24, Gateway: "10.1.0.1", AvailableIPs: []string{"10.1.0.20-10.1.0.29", "10.1.0.40"}}
	for name, tc := range map[string]struct {
		change func(*v1.BCSNetPoolSpec)
		want   []FieldChange
	}{
		"nothing": {func(*v1.BCSNetPoolSpec) {}, nil},
		"a value": {func(s *v1.BCSNetPoolSpec) { s.Gateway, s.VLAN = "10.1.0.254", 7 }, []FieldChange{
			{"gateway", "10.1.0.1", "10.1.0.254"}, {"vlan", "", "7"},
		}},
		"entries of a list": {func(s *v1.BCSNetPoolSpec) { s.AvailableIPs = []string{"10.1.0.40", "10.1.0.50"} }, []FieldChange{
			{"availableIPs", "10.1.0.20-10.1.0.29", "10.1.0.50"},
		}},
		"the order of a list": {func(s *v1.BCSNetPoolSpec) { s.AvailableIPs = []string{"10.1.0.40", "10.1.0.20-10.1.0.29"} }, []FieldChange{
			{"availableIPs", "10.1.0.20-10.1.0.29 10.1.0.40", "10.1.0.40 10.1.0.20-10.1.0.29"},
		}},
		"a list of objects": {func(s *v1.BCSNetPoolSpec) { s.Routes = []v1.Route{{Dst: "10.9.0.0/16"}} }, []FieldChange{
			{"routes", "", `{"dst":"10.9.0.0/16"}`},
		}},
		"inside": {func(s *v1.BCSNetPoolSpec) {
			s.HostSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"rack": "r1"}}
		}, []FieldChange{{"hostSelector.matchLabels.rack", "", "r1"}}},
	} {
		t.Run(name, func(t *testing.T) {
			is := *base.DeepCopy()
			tc.change(&is)
			if diff := cmp.Diff(tc.want, Fields(base, is)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// A record of a pool stays small, whatever changes.
func TestFieldsAreBounded(t *testing.T) {
	var is v1.BCSNetPoolSpec
	for i := range 16384 {
		is.AvailableIPs = append(is.AvailableIPs, fmt.Sprintf("10.1.%d.%d", i/256, i%256))
	}
	labels := map[string]string{}
	for i := range 100 {
		labels[fmt.Sprint("label-", i)] = strings.Repeat("ä", 600)
	}
	is.NamespaceSelector = &metav1.LabelSelector{MatchLabels: labels}
	changes := Fields(v1.BCSNetPoolSpec{}, is)
	if len(changes) != maxFields+1 {
		t.Errorf("%d fields", len(changes))
	}
	for _, c := range changes {
		if len(c.New) > maxValue+len("…") || strings.ToValidUTF8(c.New, "") != c.New {
			t.Errorf("%s has %d bytes", c.Field, len(c.New))
		}
	}
}

func TestOfPool(t *testing.T) {
	made := func(generation int64, change func(*v1.BCSNetPool)) *v1.BCSNetPool {
		p := &v1.BCSNetPool{
			ObjectMeta: metav1.ObjectMeta{Name: "blue", Generation: generation, Annotations: map[string]string{v1.ChangedByAnnotation: "ann"}},
			Spec:       v1.BCSNetPoolSpec{Net: "10.1.0.0", Mask: 24},
		}
		if change != nil {
			change(p)
		}
		return p
	}
	ends := func(p *v1.BCSNetPool) { p.DeletionTimestamp = &metav1.Time{Time: at(9)} }
	for name, tc := range map[string]struct {
		was, is *v1.BCSNetPool
		want    string
	}{
		"created":        {nil, made(1, nil), "created ann [mask net]"},
		"its status":     {made(1, nil), made(1, func(p *v1.BCSNetPool) { p.Status.Active = 1 }), ""},
		"changed":        {made(1, nil), made(2, func(p *v1.BCSNetPool) { p.Spec.Cordoned = true }), "changed ann [cordoned]"},
		"to be deleted":  {made(1, nil), made(2, ends), "deleting  []"},
		"deleted":        {made(2, ends), nil, "deleted  []"},
		"no spec change": {made(1, nil), made(2, nil), ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if r, ok := OfPool(tc.was, tc.is, at(0)); ok {
				var fields []string
				for _, c := range r.Changes {
					fields = append(fields, c.Field)
				}
				got = fmt.Sprintf("%s %s %v", r.What, r.By, fields)
			}
			if got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}
