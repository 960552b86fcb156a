package hostnic_test

import (
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

// TestDocument applies the ConfigMap of hostnic's document as it stands, then edits it as its users do: what they see
// is what docs/migration/hostnic.md says.
func TestDocument(t *testing.T) {
	s := start(t)
	for _, ns := range []string{"test", "abc", "other"} {
		s.namespace(ns)
	}
	s.pool("vxnet-a", 3, split(26))
	s.pool("vxnet-xxxxxxxx", 4, nil)
	if out, err := cluster.Kubectl(t.Context(), "apply", "-f", "testdata/hostnic-ipam-config.yaml").
		CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	const a, b, c, d = "vxnet-a-172-16-3-0-26", "vxnet-a-172-16-3-128-26", "vxnet-a-172-16-3-64-26", "vxnet-a-172-16-3-192-26"
	s.blocks(map[string]string{a: "test 1000", b: "test 999", c: "abc 1000", d: "abc 999"})
	s.told(v1.ReasonHostnicConfigApplied, "gave "+a+" to test")
	s.applied(1)

	// Namespaces draw from their blocks in the order of their lists; those that it does not name, from the default.
	s.add("test", "one", a)
	s.add("abc", "one", c)
	s.add("other", "one", "vxnet-xxxxxxxx")

	// The other order, and a list that lost its first block while a pod has an address of it.
	s.says(`{"Default":["vxnet-xxxxxxxx"],"test":["4100-172-16-3-128-26","4100-172-16-3-0-26"],"abc":["4100-172-16-3-192-26"]}`)
	s.blocks(map[string]string{a: "test 999", b: "test 1000", c: "abc 1000 cordoned", d: "abc 1000"})
	s.told(v1.ReasonHostnicConfigApplied, "cordoned "+c+" until 1 address in use or reserved is released")
	s.applied(1)
	s.add("test", "two", b)
	s.add("abc", "two", d)
	s.add("abc", "one", c) // it has its address still

	// Given to another namespace meanwhile: it waits. When it is released, it goes, and is made again for that one.
	s.says(`{"Default":["vxnet-xxxxxxxx"],"test":["4100-172-16-3-128-26","4100-172-16-3-0-26"],"abc":["4100-172-16-3-192-26"],"other":["4100-172-16-3-64-26"]}`)
	s.told(v1.ReasonHostnicConfigDiffers, "subnet 4100-172-16-3-64-26 of namespace other: block "+c+
		" stays namespace abc's until its addresses are released")
	s.applied(0)
	s.blocks(map[string]string{a: "test 999", b: "test 1000", c: "abc 1000 cordoned", d: "abc 1000"})
	if r := s.ask(http.MethodDelete, "abc", "one"); r.Code != 0 {
		t.Fatal(r.Message)
	}
	s.blocks(map[string]string{a: "test 999", b: "test 1000", c: "other 1000", d: "abc 1000"})
	s.applied(1)
	s.add("other", "two", c)
	s.add("other", "one", "vxnet-xxxxxxxx") // its first address stays
}

// TestLastGoodState: what is wrong or gone changes nothing, and is told; blocks that are changed or deleted by hand are
// as the last good document says.
func TestLastGoodState(t *testing.T) {
	s := start(t)
	s.told(v1.ReasonHostnicConfigRefused, "there is no ConfigMap "+configMap+"; the blocks stay as they are")
	s.applied(0)
	s.pool("vxnet-a", 3, split(26))
	const a, b = "vxnet-a-172-16-3-0-26", "vxnet-a-172-16-3-64-26"
	want := map[string]string{a: "test 1000", b: "abc 1000"}
	s.says(`{"test":["4100-172-16-3-0-26"],"abc":["4100-172-16-3-64-26"]}`)
	s.blocks(want)
	s.applied(1)
	for document, words := range map[string]string{
		"":                              "ipam format error: unexpected end of JSON input; the blocks stay as they are",
		`{"test":"4100-172-16-3-0-26"}`: `ipam format error: "test": json: cannot unmarshal string into Go value of type []string`,
		`{"test":["4100-172-16-3-0-26"],"abc":["4100-172-16-3-0-26"]}`: "subnet 4100-172-16-3-0-26 was assigned to namespaces (test abc) " +
			"which was not allowed; the blocks stay as they are",
		strings.Repeat("[", 500000): "ipam format error: it is not a JSON object of lists",
	} {
		s.says(document)
		s.told(v1.ReasonHostnicConfigRefused, words)
		s.applied(0)
		s.blocks(want)
	}
	o := &v1.BCSNetPool{}
	o.Name = b
	byHand := client.RawPatch(types.MergePatchType,
		[]byte(`{"metadata":{"labels":null},"spec":{"priority":-5}}`))
	if err := admin.Patch(t.Context(), o, byHand); err != nil {
		t.Fatal(err)
	}
	s.blocks(want)
	m := s.configMap()
	if err := admin.Delete(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	s.blocks(want)
	if err := admin.Delete(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	s.blocks(map[string]string{a: "test 1000", b: "abc 1000 going"})
	s.blocks(want) // made again

	// A leader that has not seen a good one leaves all as it is.
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	again := start(t)
	again.applied(0)
	again.blocks(want)
	again.says(`{"abc":["4100-172-16-3-64-26"]}`)
	again.blocks(map[string]string{b: "abc 1000"})
	again.applied(1)
	again.says("{}")
	again.blocks(nil)
}

// TestInTheWay: of a good document, what pools and others do not allow is told, and all else is done.
func TestInTheWay(t *testing.T) {
	controlplane.TakesLong(t)
	s := start(t)
	for _, ns := range []string{"test", "abc"} {
		s.namespace(ns)
	}
	s.pool("vxnet-a", 3, func(o *v1.BCSNetPoolSpec) { o.BlockSize, o.AutoAssign = 26, true })
	s.pool("flat", 5, func(o *v1.BCSNetPoolSpec) { o.Namespaces = []string{"elsewhere"} })
	s.add("abc", "one", s.firstOf("vxnet-a", "abc"))
	taken := s.firstOf("vxnet-a", "abc")
	all := []string{"172-16-3-0-26", "172-16-3-64-26", "172-16-3-128-26", "172-16-3-192-26"}
	want := map[string]string{taken: "abc 0"}
	var list []string
	for _, end := range all {
		if name := "vxnet-a-" + end; name != taken {
			want[name] = fmt.Sprintf("test %d", 1000-len(list)) // in the order of the list
			list = append(list, `"4100-`+end+`"`)
		}
	}
	other := `"4100-` + strings.TrimPrefix(taken, "vxnet-a-") + `"`
	s.says(`{"Default":["nowhere","flat"],"test":[` + strings.Join(list, ",") +
		`,` + other + `,"vxnet-b","4100-172-17-0-0-26","4100-172-16-3-0-27"]}`)
	s.blocks(want)
	s.applied(0)
	for _, words := range []string{
		"of namespace test: block " + taken + " belongs to namespace abc, and not by this ConfigMap; to take it back: " +
			"bcsnetctl pool delete " + taken,
		"subnet vxnet-b of namespace test does not end in the CIDR of a block",
		"subnet 4100-172-17-0-0-26 of namespace test: no pool is split into blocks of which 172.17.0.0/26 is one",
		"subnet 4100-172-16-3-0-27 of namespace test: no pool",
		"Default names nowhere, and there is no such pool",
		"; and 2 more",
	} {
		s.told(v1.ReasonHostnicConfigDiffers, words)
	}
	// What comes later is taken up: a pool that is split like it, and a block of the namespace's own, which keeps its
	// address.
	s.says(`{"test":[` + strings.Join(list[1:], ",") + `,"4100-172-16-6-0-28"],"abc":["x",` + other + `]}`)
	s.told(v1.ReasonHostnicConfigDiffers, "subnet-auto-assign is off, and pool vxnet-a has autoAssign: true, which counts")
	s.pool("vxnet-c", 6, split(28))
	first := "vxnet-a-" + strings.Trim(strings.TrimPrefix(list[0], `"4100-`), `"`)
	delete(want, first)
	for i, name := range list[1:] {
		want["vxnet-a-"+strings.Trim(strings.TrimPrefix(name, `"4100-`), `"`)] = fmt.Sprintf("test %d", 1000-i)
	}
	want["vxnet-c-172-16-6-0-28"] = "test 998"
	want[taken] = "abc 999"
	s.blocks(want)
	s.add("abc", "one", taken)

	// A block whose namespace is not there stays while the ConfigMap names it.
	kept := maps.Clone(want)
	s.says(`{"test":[` + strings.Join(list[1:], ",") + `,"4100-172-16-6-0-28"],"abc":[` + other + `],"nobody":["4100-172-16-6-16-28"]}`)
	kept[taken], kept["vxnet-c-172-16-6-16-28"] = "abc 1000", "nobody 1000"
	s.blocks(kept)
}

// firstOf returns the block that a namespace gets by itself, by asking for an address of a pod that goes again.
func (s *site) firstOf(parent, namespace string) string {
	s.Helper()
	name := ""
	controlplane.Eventually(s.T, func() error {
		s.makePod(namespace, "first")
		a := s.ask(http.MethodPost, namespace, "first")
		if a.Code != 0 || !strings.HasPrefix(a.Address.Pool, parent+"-") {
			return fmt.Errorf("%s: %+v", a.Message, a.Address)
		}
		name = a.Address.Pool
		return nil
	})
	s.ask(http.MethodDelete, namespace, "first")
	return name
}

// TestExample: what the example shows is accepted as it is written, and does what it says.
func TestExample(t *testing.T) {
	s := start(t)
	root, err := controlplane.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	if out, err := cluster.Kubectl(t.Context(), "apply", "-f", filepath.Join(root, "examples", "hostnic", "mapping.yaml")).
		CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	s.blocks(map[string]string{
		"vxnet-a-172-16-3-0-26": "test 1000", "vxnet-a-172-16-3-128-26": "test 999", "vxnet-a-172-16-3-64-26": "abc 1000",
		"vxnet-a-172-16-3-192-26": "abc 999",
	})
	s.applied(1)
	for namespace, pool := range map[string]string{"test": "vxnet-a-172-16-3-0-26", "other": "vxnet-b"} {
		s.namespace(namespace)
		s.add(namespace, "example", pool)
	}
}
