package pool

import (
	"strings"
	"testing"

	"github.com/bcsnet/bcsnet/pkg/store"
)

// FuzzManifest: a pool that somebody wrote is refused, or one whose addresses can be told; a file of any bytes ends.
func FuzzManifest(f *testing.F) {
	for _, text := range []string{
		"apiVersion: networkextension.bkbcs.tencent.com/v1\nkind: BCSNetPool\nmetadata: {name: p}\nspec: {net: 10.0.0.0, mask: 24, gateway: 10.0.0.1, hosts: [10.0.0.11], availableIPs: [10.0.0.20-10.0.0.29]}\n---\n",
		`{"apiVersion":"v1","kind":"List","items":[{"kind":"BCSNetPool","metadata":{"name":"p"},"spec":{"routes":[{"dst":"0.0.0.0/0","gw":"x"}]}}]}`,
		"kind: [", "- a", "null", "---\n---", "kind: List\nitems: 1", "a: &a [*a]",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		all, err := decodeObjects("file", strings.NewReader(text))
		if err != nil {
			return
		}
		for _, o := range all {
			p, err := parseManifest(o)
			if err == nil && (p.Name == "" || store.Pool(p.BCSNetPool).Problem != "") {
				t.Errorf("%q is taken for pool %+v", text, p.BCSNetPool)
			}
		}
	})
}
