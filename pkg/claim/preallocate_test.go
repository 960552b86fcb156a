package claim

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	v1 "github.com/bcsnet/bcsnet/api/v1"
)

// TestPreallocates: how many addresses a claim is to have before pods ask, and for which namespaces.
func TestPreallocates(t *testing.T) {
	for name, tc := range map[string]struct {
		namespace string
		spec      v1.BCSNetIPClaimSpec
		deleting  bool
		want      int
		of        []string
		problem   string
	}{
		"nothing said":      {spec: v1.BCSNetIPClaimSpec{Replicas: new(int32(3))}, of: []string{"shop"}},
		"a size":            {spec: v1.BCSNetIPClaimSpec{Preallocate: true, Replicas: new(int32(3)), Surge: 2}, want: 3, of: []string{"shop"}},
		"none":              {spec: v1.BCSNetIPClaimSpec{Preallocate: true, Replicas: new(int32(0))}, of: []string{"shop"}},
		"all its addresses": {spec: v1.BCSNetIPClaimSpec{Preallocate: true, Addresses: []string{"10.0.0.9-10.0.0.12"}}, want: MaxPreallocated, of: []string{"shop"}},
		"some of them": {
			spec: v1.BCSNetIPClaimSpec{
				Preallocate: true, Addresses: []string{"10.0.0.0/8"}, Replicas: new(int32(3)), Namespaces: []string{"pay"},
			}, want: 3, of: []string{"shop"},
		},
		"of other namespaces, by pods alone": {spec: v1.BCSNetIPClaimSpec{Replicas: new(int32(3)), Namespaces: []string{"pay"}}, of: []string{"shop", "pay"}},
		"of other namespaces":                {namespace: "bcsnet-system", spec: v1.BCSNetIPClaimSpec{Preallocate: true, Replicas: new(int32(3)), Namespaces: []string{"pay"}}, want: 3, of: []string{"bcsnet-system", "pay"}},
		"of all namespaces":                  {namespace: "bcsnet-system", spec: v1.BCSNetIPClaimSpec{Preallocate: true, Replicas: new(int32(3)), Namespaces: []string{"pay", "*"}}, want: 3, of: []string{"", "bcsnet-system"}},
		"of all namespaces, in another one":  {spec: v1.BCSNetIPClaimSpec{Preallocate: true, Replicas: new(int32(3)), Namespaces: []string{"*"}}, want: 3, of: []string{"shop"}},
		"being deleted":                      {spec: v1.BCSNetIPClaimSpec{Preallocate: true, Replicas: new(int32(3))}, deleting: true, of: []string{"shop"}},
		"more than there may be": {
			spec:    v1.BCSNetIPClaimSpec{Preallocate: true, Addresses: []string{"2001:db8::/64"}},
			problem: "more than 65536: set spec.replicas",
		},
		"the most": {spec: v1.BCSNetIPClaimSpec{Preallocate: true, Addresses: []string{"10.1.0.0/16"}}, want: MaxPreallocated, of: []string{"shop"}},
	} {
		t.Run(name, func(t *testing.T) {
			o := &v1.BCSNetIPClaim{Spec: tc.spec}
			o.Namespace, o.Name = cmp.Or(tc.namespace, "shop"), "web"
			c, err := FromObject(o)
			if tc.problem != "" {
				if err == nil || !strings.Contains(err.Error(), tc.problem) {
					t.Errorf("the spec is refused with %v, want %s", err, tc.problem)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			c.Deleting = tc.deleting
			if got := c.preallocates(); got != tc.want {
				t.Errorf("it is to have %d, want %d", got, tc.want)
			}
			if got := c.drawsFor("bcsnet-system"); !slices.Equal(got, tc.of) {
				t.Errorf("it draws for %q, want %q", got, tc.of)
			}
		})
	}
}
