package pool

import (
	"testing"
	"time"

	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// TestIdleSince: the hour of a block whose namespace is gone begins with that, however long nobody used it before; and
// with every use anew.
func TestIdleSince(t *testing.T) {
	now := time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	before := now.Add(-time.Hour)
	b := ipam.IdleBlock{Block: "net-10-0-0-32-27", Created: now.Add(-48 * time.Hour), Used: now.Add(-2 * time.Hour)}
	seen := idleSince{keyOf(b): before}
	for name, tc := range map[string]struct {
		change func(*ipam.IdleBlock)
		want   time.Time
	}{
		"still idle":             {func(*ipam.IdleBlock) {}, before},
		"used meanwhile":         {func(b *ipam.IdleBlock) { b.Used = now.Add(-time.Minute) }, now},
		"made again":             {func(b *ipam.IdleBlock) { b.Created = now.Add(-time.Minute) }, now},
		"its namespace has gone": {func(b *ipam.IdleBlock) { b.Abandoned = true }, now},
		"another":                {func(b *ipam.IdleBlock) { b.Block = "net-10-0-0-64-27" }, now},
	} {
		t.Run(name, func(t *testing.T) {
			is := b
			tc.change(&is)
			if got := seen.of(is, now); !got.Equal(tc.want) {
				t.Errorf("idle since %s, want %s", got, tc.want)
			}
		})
	}
}
