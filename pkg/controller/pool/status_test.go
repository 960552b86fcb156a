package pool

import (
	"fmt"
	"strings"
	"testing"

	"go4.org/netipx"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/controller/conditions"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
)

// TestOverlapConditionIsBounded: a pool that shares addresses with very many others still has a status
// that the API server takes, and the reason looks at all of them.
func TestOverlapConditionIsBounded(t *testing.T) {
	shared, err := (&netipx.IPSetBuilder{}).IPSet()
	if err != nil {
		t.Fatal(err)
	}
	var all []index.Overlap
	for i := range 5000 {
		all = append(all, index.Overlap{
			Other: fmt.Sprintf("%s-%d", strings.Repeat("n", 240), i), Shared: shared, Served: i < 4999,
		})
	}
	c := overlapCondition(all)
	if len(c.Message) > conditions.MaxMessage || !strings.HasSuffix(c.Message, "; and with 4990 more pools") {
		t.Errorf("%d bytes that end in %q", len(c.Message), c.Message[max(0, len(c.Message)-60):])
	}
	if c.Reason != v1.ReasonSharedLost {
		t.Errorf("reason %s although another pool hands some out", c.Reason)
	}
}
