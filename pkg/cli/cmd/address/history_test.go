package address

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bcsnet/bcsnet/pkg/cli/view"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

func TestPastRows(t *testing.T) {
	now := time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	addr := netip.MustParseAddr("10.1.0.20")
	held := lease.Lease{
		Addr: addr, State: lease.Active, Updated: now, Holder: lease.Holder{Namespace: "shop", PodName: "web-0"},
	}
	released, _ := lease.Release(held, now.Add(time.Hour), lease.Change{})
	reserved, _ := lease.Reserve(released, lease.Params{}, now.Add(2*time.Hour),
		lease.Change{Verb: lease.VerbReserve, By: "ann", Reason: "lab"})
	for name, tc := range map[string]struct {
		lease lease.Lease
		want  []string
	}{
		"never held": {lease.Lease{Addr: addr}, nil},
		"held":       {held, []string{"2026-05-04T03:02:01Z now shop/web-0 holds"}},
		"given up":   {released, []string{"2026-05-04T03:02:01Z 2026-05-04T04:02:01Z shop/web-0 gave up"}},
		"reserved": {reserved, []string{
			"2026-05-04T05:02:01Z now  reserved ann lab",
			" 2026-05-04T05:02:01Z  reserve ann lab",
			"2026-05-04T03:02:01Z 2026-05-04T04:02:01Z shop/web-0 gave up",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, r := range view.PastOf(tc.lease) {
				var cells []string
				for _, c := range pastColumns() {
					if c.Name != "ADDRESS" && c.Name != "HOST" {
						cells = append(cells, c.Cell(r))
					}
				}
				got = append(got, strings.TrimRight(strings.Join(cells, " "), " "))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
