package hostnic_test

import (
	"fmt"
	"strings"
	"testing"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

// TestKilled: a leader that ends half-way through a long document, which is edited meanwhile; the next one finishes it.
// No block is made twice, or for two.
func TestKilled(t *testing.T) {
	controlplane.TakesLong(t)
	s := start(t)
	const blocks = 256
	s.pool("many", 9, split(32))
	document := func(owner func(i int) string) (string, map[string]string) {
		lists, want := map[string][]string{}, map[string]string{}
		for i := range blocks {
			ns := owner(i)
			if i == 0 || i == 254 || i == 255 { // the network's, the gateway's and the broadcast address
				continue
			}
			want[fmt.Sprintf("many-172-16-9-%d-32", i)] = fmt.Sprintf("%s %d", ns, 1000-len(lists[ns]))
			lists[ns] = append(lists[ns], fmt.Sprintf(`"1-172-16-9-%d-32"`, i))
		}
		var parts []string
		for ns, list := range lists {
			parts = append(parts, fmt.Sprintf("%q:[%s]", ns, strings.Join(list, ",")))
		}
		return "{" + strings.Join(parts, ",") + "}", want
	}
	first, _ := document(func(i int) string { return fmt.Sprintf("ns-%d", i/100) })
	s.says(first)
	controlplane.Eventually(t, func() error {
		var list v1.BCSNetPoolList
		if err := admin.List(t.Context(), &list); err != nil {
			return err
		}
		if len(list.Items) < 20 {
			return fmt.Errorf("%d pools", len(list.Items))
		}
		return nil
	})
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	second, want := document(func(i int) string { return fmt.Sprintf("ns-%d", i/100+i/250) })
	s.says(second)
	again := start(t)
	again.blocks(want)
	again.applied(1)
}
