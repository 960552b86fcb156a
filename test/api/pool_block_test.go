package api

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/bcsnet/bcsnet/api/v1"
)

// A block belongs to the namespace that its CREATE gave it to, and has the addresses that it is called by. A group that
// is called alike may change.
func TestBlockKeepsItsOwner(t *testing.T) {
	const owned = "spec.namespaces: Forbidden: a block belongs to namespace shop, for which it was made, for as long as " +
		"it exists: delete it, and give the other namespace a block: bcsnetctl pool bind blue --namespace NAMESPACE"
	const called = "spec.availableIPs: Forbidden: a block has the addresses that it is called by, 10.0.0.64/27, for as " +
		"long as it exists"
	block := func(s *v1.BCSNetPoolSpec) {
		s.Parent, s.Materialize = "blue", v1.MaterializeOnDemand
		s.AvailableIPs, s.Namespaces = []string{"10.0.0.64/27"}, []string{"shop"}
	}
	namespaces := func(all ...string) func(*v1.BCSNetPoolSpec) {
		return func(s *v1.BCSNetPoolSpec) { s.Namespaces = all }
	}
	addresses := func(all ...string) func(*v1.BCSNetPoolSpec) {
		return func(s *v1.BCSNetPoolSpec) { s.AvailableIPs = all }
	}
	six := func(s *v1.BCSNetPoolSpec) {
		s.Net, s.Mask, s.Gateway, s.AvailableIPs = "2001:db8::", 64, "2001:db8::1", []string{"2001:db8::40/122"}
	}
	const four, sixth = "blue-10-0-0-64-27", "blue-2001-0db8-0000-0000-0000-0000-0000-0040-122"
	c := connect(t)
	for name, tc := range map[string]struct {
		name          string
		before, after edits
		want          []string
	}{
		"nothing of it":          {four, edits{block}, edits{func(s *v1.BCSNetPoolSpec) { s.Cordoned, s.Priority = true, 7 }}, nil},
		"another namespace":      {four, edits{block}, edits{namespaces("bank")}, []string{owned}},
		"a second namespace":     {four, edits{block}, edits{namespaces("shop", "bank")}, []string{owned}},
		"no namespace":           {four, edits{block}, edits{namespaces()}, []string{owned}},
		"other addresses":        {four, edits{block}, edits{addresses("10.0.0.96/27")}, []string{called}},
		"no addresses":           {four, edits{block}, edits{addresses()}, []string{called}},
		"IPv6":                   {sixth, edits{block, six}, edits{namespaces("bank")}, []string{owned}},
		"IPv6, nothing of it":    {sixth, edits{block, six}, edits{func(s *v1.BCSNetPoolSpec) { s.Priority = 7 }}, nil},
		"one with none is given": {four, edits{block, namespaces()}, edits{namespaces("shop")}, nil},
		"one with two is mended": {four, edits{block, namespaces("shop", "bank")}, edits{namespaces("shop")}, nil},
		"another name":           {"blue-shop", edits{block}, edits{namespaces("bank"), addresses("10.0.0.96/27")}, nil},
		"IPv6, another name":     {"blue-shop", edits{block, six}, edits{namespaces("bank")}, nil},
		"a group called so": {
			four, edits{block, func(s *v1.BCSNetPoolSpec) { s.Materialize = v1.MaterializeAuto }},
			edits{namespaces("bank"), addresses("10.0.0.96/27")}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := pool(tc.before...)
			p.ObjectMeta = metav1.ObjectMeta{Name: tc.name}
			create(t, c, p)
			for _, edit := range tc.after {
				edit(&p.Spec)
			}
			if diff := compare(t, tc.want, c.Update(t.Context(), p)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
