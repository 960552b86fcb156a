package workload

import (
	"encoding/json"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// An IPAMClaim of whichever CRD is read, or says why it cannot be.
func TestReadIPAMClaim(t *testing.T) {
	for name, tc := range map[string]struct {
		object  string
		want    IPAMClaim
		problem string
	}{
		"the least": {object: `{"spec":{"interface":"net1","network":"n"}}`, want: IPAMClaim{Interface: "net1"}},
		"nothing":   {object: `{}`},
		"a pod as an object": {
			object: `{"status":{"ips":["10.0.0.5/24"],"ownerPod":{"name":"p"}}}`,
			want:   IPAMClaim{Status: IPAMClaimStatus{IPs: []string{"10.0.0.5/24"}, OwnerPod: "p"}},
		},
		"a pod as a text":            {object: `{"status":{"ips":[],"ownerPod":"p"}}`, want: IPAMClaim{Status: IPAMClaimStatus{OwnerPod: "p"}}},
		"a pod as something else":    {object: `{"status":{"ownerPod":[7]}}`},
		"a pod that is null":         {object: `{"status":{"ownerPod":null}}`},
		"requests of both families":  {object: `{"spec":{"ipRequests":["10.0.0.5/24","fd00::5/64"]}}`, want: IPAMClaim{Requests: prefixes("10.0.0.5/24", "fd00::5/64")}},
		"two requests of a family":   {object: `{"spec":{"ipRequests":["10.0.0.5/24","10.0.0.6/24"]}}`, problem: "10.0.0.6/24 is the second"},
		"an address without a mask":  {object: `{"spec":{"ipRequests":["10.0.0.5"]}}`, problem: `"10.0.0.5" is not an address`},
		"a mapped address":           {object: `{"spec":{"ipRequests":["::ffff:10.0.0.5/120"]}}`, problem: "is not an address"},
		"requests that are no list":  {object: `{"spec":{"ipRequests":"10.0.0.5/24"}}`, problem: "cannot be read"},
		"a spec that is no object":   {object: `{"spec":[]}`, problem: "cannot be read"},
		"an interface that is a map": {object: `{"spec":{"interface":{}}}`, problem: "cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			u := &unstructured.Unstructured{}
			if err := json.Unmarshal([]byte(tc.object), &u.Object); err != nil {
				t.Fatal(err)
			}
			u.SetNamespace("shop")
			u.SetName("vm.a")
			u.SetKind("IPAMClaim")
			got := ipamClaimOf(u)
			if got.Workload != ipamClaimNamed("shop", "vm.a") || (got.Problem == "") != (tc.problem == "") ||
				!strings.Contains(got.Problem, tc.problem) {
				t.Fatalf("%+v, want %q", got, tc.problem)
			}
			if tc.problem != "" {
				return
			}
			tc.want.Workload = got.Workload
			if diff := cmp.Diff(&tc.want, got, cmpopts.EquateEmpty(), cmpopts.EquateComparable(netip.Prefix{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func prefixes(texts ...string) (all []netip.Prefix) {
	for _, text := range texts {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

// The name of a claim leads back to its IPAMClaim.
func TestClaimOfIPAMClaim(t *testing.T) {
	o := watched(t, 0, 0).Owners
	k := o.kinds[schema.GroupKind{Group: networksGroup, Kind: ipamClaimKind}]
	long := strings.Repeat("a", 250)
	k.objects.by = map[types.NamespacedName]*object{}
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetNamespace("shop")
	u.SetName(long)
	k.objects.store(u)
	for name, known := range map[string]bool{"vm.a": true, "x": true, long: true, strings.Repeat("b", 250): false} {
		claim := ClaimOfIPAMClaim(name)
		if w, ok := o.IPAMClaimOf("shop", claim); ok != known || ok && (w.Name != name || w.Namespace != "shop") {
			t.Errorf("%s: %+v, %v", claim, w, ok)
		}
	}
	if w, ok := o.IPAMClaimOf("shop", "vm-a"); ok {
		t.Errorf("a claim of something else: %+v", w)
	}
}

// Which fields a CRD has.
func TestIPAMClaimFields(t *testing.T) {
	for name, tc := range map[string]struct {
		status string
		want   IPAMClaimFields
	}{
		"addresses alone": {`{"ips":{"type":"array"}}`, IPAMClaimFields{}},
		"a pod as an object": {
			`{"ips":{},"ownerPod":{"type":"object"},"conditions":{"type":"array"}}`, IPAMClaimFields{Conditions: true, Pod: true},
		},
		"a pod as a text":         {`{"ownerPod":{"type":"string"}}`, IPAMClaimFields{Pod: true, PodText: true}},
		"a pod as something else": {`{"ownerPod":{"type":"integer"},"conditions":{"type":"object"}}`, IPAMClaimFields{}},
		"no status":               {`null`, IPAMClaimFields{}},
	} {
		t.Run(name, func(t *testing.T) {
			var crd crdSchema
			text := `{"spec":{"versions":[{"name":"v0"},{"name":"v1alpha1","schema":{"openAPIV3Schema":{"properties":` +
				`{"status":{"properties":` + tc.status + `}}}}}]}}`
			if err := json.Unmarshal([]byte(text), &crd); err != nil {
				t.Fatal(err)
			}
			if got := crd.fields("v1alpha1"); got != tc.want {
				t.Errorf("%+v, want %+v", got, tc.want)
			}
			if got := crd.fields("v2"); got != (IPAMClaimFields{}) {
				t.Errorf("of another version: %+v", got)
			}
		})
	}
}
