package ledger

import (
	"fmt"
	"slices"

	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// Check returns the first rule that the tables break; nil if they keep all of them. It visits every entry: tests call
// it after each step.
func Check(x *Leases) error {
	of := func(in func(*Record) bool) func(*Record) bool {
		return func(r *Record) bool { return r.State != lease.Available && in(r) }
	}
	for _, t := range []struct {
		name string
		table
		in func(*Record) bool
	}{
		{"addresses", x.ByAddr, func(*Record) bool { return true }},
		{"containers", x.byContainer, of(func(r *Record) bool { return r.Container().Bytes != "" })},
		{"attachments", x.byAttachment, of(func(r *Record) bool { return r.Owner() != "" || r.UID().Bytes != "" })},
		{"primary keys", x.byKey, of(func(r *Record) bool { return r.Claim() != "" && r.key() != "" })},
		{"last holders", x.byLast, func(r *Record) bool { return r.State == lease.Available && r.LastUID() != "" }},
	} {
		all := slices.Collect(t.All())
		if len(all) != t.Size || len(all) > len(t.Heads) {
			return fmt.Errorf("the table of %s holds %d, counts %d, has room for %d", t.name, len(all), t.Size,
				len(t.Heads))
		}
		found := map[*Record]bool{}
		for _, r := range all {
			found[r] = true
		}
		for r := range x.ByAddr.All() {
			if found[r] != t.in(r) {
				return fmt.Errorf("the table of %s has the entry of %s: %t, want %t", t.name, r.Addr, found[r], t.in(r))
			}
			delete(found, r)
		}
		for r := range found {
			return fmt.Errorf("the table of %s has an entry of %s that is not the present one", t.name, r.Addr)
		}
	}
	for h, of := range x.ByHost {
		if len(of) == 0 {
			return fmt.Errorf("ByHost keeps nothing of %s", h)
		}
	}
	return nil
}
