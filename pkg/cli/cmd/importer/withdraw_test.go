package importer

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/importer/system"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

// definition returns a NetworkAttachmentDefinition of Whereabouts.
func definition(name, generation, config, withdrawn string) unstructured.Unstructured {
	o := unstructured.Unstructured{Object: map[string]any{
		"kind": "NetworkAttachmentDefinition",
		"metadata": map[string]any{
			"name": name, "namespace": "shop", "uid": "u-" + name, "generation": int64(len(generation)),
			"annotations": map[string]any{v1.WithdrawnAnnotation: withdrawn},
		},
		"spec": map[string]any{"config": config},
	}}
	return o
}

// TestSeen: an address is withdrawn if all objects say so that speak for the pool; what only some say is torn. An
// object that cannot be read is named once, though it may speak for each pool.
func TestSeen(t *testing.T) {
	all := system.All()
	of := all[slices.IndexFunc(all, func(s system.System) bool { return s.Name == "whereabouts" })]
	const lan, excludes = `{"ipam":{"type":"whereabouts","range":"10.1.0.0/24","exclude":[`, `"10.1.0.20/32","10.1.0.21/32"`
	pools := []v1.BCSNetPool{
		{Spec: v1.BCSNetPoolSpec{Net: "10.1.0.0", Mask: 24}}, {Spec: v1.BCSNetPoolSpec{Net: "10.2.0.0", Mask: 24}},
	}
	pools[0].Name, pools[1].Name = "lan", "other"
	items := []unstructured.Unstructured{
		definition("a", "1", lan+excludes+`]}}`, "10.1.0.20-10.1.0.21"), definition("b", "1", lan+`"10.1.0.20/32"]}}`, "10.1.0.20"),
	}
	w := withdrawals{by: of.Withdrawer}
	got, wrong, err := w.seen(items, pools)
	if err != nil || len(wrong) > 0 {
		t.Fatal(wrong, err)
	}
	if text := ipaddr.FormatSet(got.Withdrawn["lan"]); text != "10.1.0.20" {
		t.Errorf("withdrawn is %s", text)
	}
	if text := ipaddr.FormatSet(got.Torn["lan"]); text != "10.1.0.21" {
		t.Errorf("torn is %s", text)
	}
	if got.By["lan"] != "u-a/1 u-b/1 " || got.Withdrawn["other"] != nil {
		t.Errorf("%q speak for lan, and %v is withdrawn", got.By["lan"], got.Withdrawn)
	}
	items[1] = definition("b", "11", lan+excludes+`]}}`, "10.1.0.20-10.1.0.21")
	again, _, err := w.seen(items, pools)
	if err != nil || again.By["lan"] == got.By["lan"] {
		t.Errorf("a change is not seen: %q (%v)", again.By["lan"], err)
	}
	_, wrong, err = w.seen(append(items, definition("c", "1", lan, "")), pools)
	if err != nil || len(wrong) != 1 || wrong[0].Object != "NetworkAttachmentDefinition shop/c" {
		t.Errorf("%v (%v)", wrong, err)
	}
}
