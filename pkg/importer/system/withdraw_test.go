package system

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/importer"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

const (
	ovnObject = `
apiVersion: kubeovn.io/v1
kind: Subnet
metadata: {name: lan, annotations: {keep: me}}
spec: {cidrBlock: "10.1.0.0/24,fd00:1::/64", excludeIps: [10.1.0.1, "10.1.0.10..10.1.0.12", "fd00:1::1"], natOutgoing: true, later: {field: [1, 2]}}
`
	nadObject = `
apiVersion: k8s.cni.cncf.io/v1
kind: NetworkAttachmentDefinition
metadata: {name: lan, namespace: shop}
spec:
  config: '{"cniVersion":"0.3.1","big":12345678901234567890,"plugins":[{"type":"macvlan","ipam":{"type":"whereabouts","ipRanges":[{"range":"10.1.0.0/24","exclude":["10.1.0.0/28"]},{"range":"10.2.0.5-10.2.0.99/24","enable":true}]}},{"type":"tuning"}]}'
`
	oldPool = `
apiVersion: netservice.bkbcs.tencent.com/v1
kind: BCSNetPool
metadata: {name: old, labels: {keep: me}}
spec: {net: 10.1.0.0, mask: 24, gateway: 10.1.0.1, hosts: [10.0.0.11], availableIPs: [10.1.0.22, 10.1.0.20, 10.1.0.21], later: true}
`
)

// poolNamed returns a pool of 10.1.0.0/24.
func poolNamed(name string) *v1.BCSNetPool {
	return &v1.BCSNetPool{
		ObjectMeta: namedMeta(name), Spec: v1.BCSNetPoolSpec{Net: "10.1.0.0", Mask: 24, Network: name},
	}
}

// TestWithdrawers: what is withdrawn is read back, twice the same is the same, and after all went back the object is as
// it was, with what it says for others and with fields that nobody here knows.
func TestWithdrawers(t *testing.T) {
	for name, c := range map[string]struct {
		of     System
		object string
		// fields has lines that the object has when 10.1.0.21-10.1.0.22 are withdrawn; changed whether their order may
		// differ when they are back.
		fields  []string
		changed bool
	}{
		"spiderpool": {of: spiderpool(), fields: []string{
			"name: bcsnet-lan", "kind: SpiderReservedIP", "- 10.1.0.21-10.1.0.22", "ipVersion: 4"}},
		"calico": {of: calico(), fields: []string{
			"name: bcsnet-lan", "kind: IPReservation", "- 10.1.0.21/32", "- 10.1.0.22/32"}},
		"kube-ovn": {of: kubeOVN(), object: ovnObject, fields: []string{
			"- 10.1.0.1\n", "- 10.1.0.10..10.1.0.12", "- fd00:1::1", "- 10.1.0.21..10.1.0.22", "natOutgoing: true", "field:", "keep: me"}},
		"whereabouts": {of: whereabouts(), object: nadObject, fields: []string{
			`"exclude":["10.1.0.0/28","10.1.0.21/32","10.1.0.22/32"]`, `"big":12345678901234567890`, `{"type":"tuning"}`,
			`{"enable":true,"range":"10.2.0.5-10.2.0.99/24"}`}},
		"netservice": {of: netservice(), object: oldPool, changed: true, fields: []string{
			"availableIPs:\n  - 10.1.0.20\n", "later: true", "keep: me"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := c.of.Withdrawer
			pool := poolNamed(map[bool]string{true: "old", false: "lan"}[name == "netservice"])
			o := w.New(pool)
			if c.object != "" {
				if o != nil {
					t.Fatal("it has an object of its own")
				}
				o = &unstructured.Unstructured{}
				if err := yaml.Unmarshal([]byte(c.object), &o.Object); err != nil {
					t.Fatal(err)
				}
			}
			if !w.Carries(o, pool) || c.object == "" && w.Carries(o, poolNamed("other")) {
				t.Errorf("it speaks for the wrong pool")
			}
			before := o.DeepCopy()
			set := func(text ...string) {
				t.Helper()
				want, err := setOf(text)
				if err != nil {
					t.Fatal(err)
				}
				for range 2 {
					if err := w.Set(o, want); err != nil {
						t.Fatal(err)
					}
					got, err := w.Withdrawn(o)
					if err != nil || !got.Equal(want) {
						t.Errorf("withdrawn is %s (%v), want %s", ipaddr.FormatSet(got), err, ipaddr.FormatSet(want))
					}
				}
			}
			set("10.1.0.20-10.1.0.22")
			set("10.1.0.21-10.1.0.22")
			text, err := yaml.Marshal(o.Object)
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range c.fields {
				if !strings.Contains(string(text), want) {
					t.Errorf("it has no %q:\n%s", want, text)
				}
			}
			set()
			if c.object == "" || c.changed {
				return
			}
			if diff := cmp.Diff(plain(t, before), plain(t, o)); diff != "" {
				t.Errorf("it is not as before (-before +after):\n%s", diff)
			}
		})
	}
}

// TestExclusionsOfOthersStay: what somebody excluded, before the withdrawal or after it, is excluded when ours went
// back, unless the system merged the entries.
func TestExclusionsOfOthersStay(t *testing.T) {
	for name, c := range map[string]struct {
		entries, later, want []string
	}{
		"before": {entries: []string{"10.1.0.0/28"}, want: []string{"10.1.0.0/28"}},
		"after":  {later: []string{"10.1.0.4-10.1.0.6"}, want: []string{"10.1.0.4-10.1.0.6"}},
		"both":   {entries: []string{"10.1.0.9"}, later: []string{"10.1.0.5"}, want: []string{"10.1.0.9", "10.1.0.5"}},
	} {
		t.Run(name, func(t *testing.T) {
			ours, err := setOf([]string{"10.1.0.5"})
			if err != nil {
				t.Fatal(err)
			}
			list, err := replaced(c.entries, ipaddr.SetOf(), ours, formatRanges(".."))
			if err != nil {
				t.Fatal(err)
			}
			var texts []string
			for _, text := range list {
				texts = append(texts, text.(string))
			}
			list, err = replaced(append(texts, c.later...), ours, ipaddr.SetOf(), formatRanges(".."))
			if err != nil || fmt.Sprint(list) != fmt.Sprint(c.want) {
				t.Errorf("%v, want %v (%v)", list, c.want, err)
			}
		})
	}
	ours, err := setOf([]string{"10.1.0.5"})
	if err != nil {
		t.Fatal(err)
	}
	list, err := replaced([]string{"10.1.0.4..10.1.0.5"}, ours, ipaddr.SetOf(), formatRanges(".."))
	if err != nil || fmt.Sprint(list) != "[10.1.0.4]" {
		t.Errorf("of merged entries stays %v (%v)", list, err)
	}
}

// plain returns an object with a network configuration in it decoded.
func plain(t *testing.T, o *unstructured.Unstructured) map[string]any {
	t.Helper()
	out := o.DeepCopy()
	if text, found, _ := unstructured.NestedString(out.Object, "spec", "config"); found {
		var config map[string]any
		if err := json.Unmarshal([]byte(text), &config); err != nil {
			t.Fatal(err)
		}
		if err := unstructured.SetNestedMap(out.Object, config, "spec", "config"); err != nil {
			t.Fatal(err)
		}
	}
	if len(out.GetAnnotations()) == 0 {
		out.SetAnnotations(nil)
	}
	return out.Object
}

// TestWithdrawnByBoth: only what field and annotation both say is withdrawn: somebody who restores a manifest has the
// other system hand out again.
func TestWithdrawnByBoth(t *testing.T) {
	for of, text := range map[*System]string{
		new(kubeOVN()): ovnObject, new(whereabouts()): nadObject, new(netservice()): oldPool,
	} {
		t.Run(of.Name, func(t *testing.T) {
			o := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
				t.Fatal(err)
			}
			o.SetAnnotations(map[string]string{v1.WithdrawnAnnotation: "10.1.0.20-10.1.0.22"})
			if got, err := of.Withdrawer.Withdrawn(o); err != nil || len(got.Ranges()) > 0 {
				t.Errorf("withdrawn is %s (%v), and the field does not say so", ipaddr.FormatSet(got), err)
			}
			o.SetAnnotations(map[string]string{v1.WithdrawnAnnotation: "10.1.0.x"})
			if _, err := of.Withdrawer.Withdrawn(o); err == nil {
				t.Error("an annotation that cannot be read counts as empty")
			}
		})
	}
}

// TestOwnReservationsAreNoRows: what we withdrew is not reserved here by a later import.
func TestOwnReservationsAreNoRows(t *testing.T) {
	mark := namedMeta("bcsnet-lan")
	others := func(r importer.Rows) string {
		var out []string
		for _, a := range r.Addresses {
			out = append(out, a.String())
		}
		for _, c := range r.Conflicts {
			out = append(out, c.Cause)
		}
		return strings.Join(out, " ")
	}
	mark.Annotations = map[string]string{v1.WithdrawnAnnotation: "10.1.0.20"}
	s := spiderReserved{ObjectMeta: mark}
	s.Spec.IPs = []string{"10.1.0.20"}
	c := calicoReservation{ObjectMeta: mark}
	c.Spec.ReservedCIDRs = []string{"10.1.0.20/32"}
	ofSpiderpool := func() string {
		return others(read(t, spiderpool(), map[string][]any{"spiderippools": nil, "spiderreservedips": {s}}))
	}
	ofCalico := func() string {
		return others(read(t, calico(), map[string][]any{"ippools": nil, "ipreservations": {c}}))
	}
	if got := ofSpiderpool(); got != "" {
		t.Error(got)
	}
	if got := ofCalico(); got != "" {
		t.Error(got)
	}
	// What somebody else added to the object is not ours.
	s.Spec.IPs = []string{"10.1.0.19-10.1.0.21"}
	if got := ofSpiderpool(); got != "10.1.0.19 10.1.0.21" {
		t.Error(got)
	}
	c.Spec.ReservedCIDRs = []string{"10.1.0.20/31", "10.1.0.30/32"}
	if got := ofCalico(); got != "10.1.0.21 10.1.0.30" {
		t.Error(got)
	}
	mark.Annotations[v1.WithdrawnAnnotation] = "x"
	if got := ofSpiderpool(); !strings.Contains(got, "annotation") {
		t.Error(got)
	}
}

// TestObjectsOfOthersUnderOurName: what somebody else reserved stays when ours went back, and an object that no import
// made is not taken.
func TestObjectsOfOthersUnderOurName(t *testing.T) {
	for _, of := range []System{spiderpool(), calico()} {
		w, pool := of.Withdrawer, poolNamed("lan")
		o := w.New(pool)
		ours, err := setOf([]string{"10.1.0.20/32"})
		if err != nil {
			t.Fatal(err)
		}
		if w.Problem(o, pool) == "" {
			t.Errorf("%s: an object without the annotation counts as ours", of.Name)
		}
		if err := w.Set(o, ours); err != nil {
			t.Fatal(err)
		}
		if w.Problem(o, pool) != "" || w.Spent(o) {
			t.Errorf("%s: ours is not ours", of.Name)
		}
		spec := o.Object["spec"].(map[string]any)
		for field, list := range spec {
			if list, ok := list.([]any); ok {
				spec[field] = append(list, "10.1.0.40/32")
			}
		}
		if err := w.Set(o, ipaddr.SetOf()); err != nil {
			t.Fatal(err)
		}
		if w.Spent(o) || !strings.Contains(fmt.Sprint(spec), "10.1.0.40/32") || strings.Contains(fmt.Sprint(spec), "10.1.0.20") {
			t.Errorf("%s: what somebody else reserved is lost: %v", of.Name, spec)
		}
		if o = w.New(pool); w.Set(o, ours) != nil || w.Set(o, ipaddr.SetOf()) != nil || !w.Spent(o) {
			t.Errorf("%s: an object that says nothing is kept", of.Name)
		}
	}
}

// TestProblemsOfDefinitions: a NetworkAttachmentDefinition of Whereabouts whose ranges are not all known may hand out
// any address.
func TestProblemsOfDefinitions(t *testing.T) {
	for config, want := range map[string]string{
		`{"type":"macvlan","ipam":{"type":"whereabouts","range":"10.1.0.0/24"}}`:                                   "",
		`{"plugins":[{"ipam":{"type":"whereabouts","ipRanges":[{"range":"10.1.0.0/24"},{"range":"fd00::/64"}]}}]}`: "",
		`{"type":"macvlan","ipam":{"type":"host-local","ranges":[]}}`:                                              "",
		`yes`: "",
		``:    "",
		`{"ipam":{"type":"whereabouts","range":"10.1.0.0/24"`:                                        "its config cannot be read",
		`{"ipam":{"type":"whereabouts","range":"10.1.0.0"}}`:                                         "its config cannot be read",
		`{"ipam":{"type":"whereabouts","range":"10.1.0.0/24","exclude":"none"}}`:                     "its config cannot be read",
		`{"ipam":{"type":"whereabouts","ipRanges":[{"range":"10.1.0.0/24"},{"range":"10.2.0/24"}]}}`: "its config cannot be read",
		`{"ipam":{"type":"whereabouts","configuration_path":"/etc/cni/whereabouts.conf"}}`:           "has no range",
		`{"ipam":{"type":"whereabouts","ipRanges":[]}}`:                                              "has no range",
		`{"ipam":{"type":"whereabouts","Range":"10.1.0.0/24"}}`:                                      "not every range",
		`{"plugins":[{"IPAM":{"type":"whereabouts","range":"10.1.0.0/24"}}]}`:                        "not every range",
	} {
		o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"config": config}}}
		got := whereabouts().Withdrawer.Problem(o, poolNamed("other"))
		if !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%s: %q, want %q", config, got, want)
		}
	}
}

func namedMeta(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }
