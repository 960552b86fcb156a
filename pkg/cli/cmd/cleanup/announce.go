package cleanup

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/bcsnet/bcsnet/pkg/cli/leasing"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// announce counts the leases by what is known of their holders, names those that end, and says why others do not.
func (v *cleanup) announce(j *judgement) {
	all := append(append([]finding{}, j.ends...), j.stays...)
	v.Say.Start("%s: %s", v.title(), sums(all))
	var ends []leasing.Ending
	for _, f := range j.ends {
		e := leasing.Ending{Grave: f.fate != isGone && f.fate != isKept}
		e.Text = fmt.Sprintf("%s of pool %s: %s; %s", f.Addr, f.Pool, f.UsedBy(), f.why)
		switch {
		case f.Other != nil:
			e.Text += "; its virtual machine " + resource.MigrationText(f.Lease)
		case f.State == lease.Active && f.KeptOnRelease() && !v.kept:
			e.Text += "; it stays reserved for claim " + f.Claim
		}
		if f.fate == lives || f.fate == unknown {
			e.Loser = f.Who()
		}
		ends = append(ends, e)
	}
	leasing.Announce(v.App, ends)
	v.leave(j.stays)
}

// leave says why leases are left alone, and what would end them.
func (v *cleanup) leave(stays []finding) {
	if v.kind.single {
		return // it is refused, or there is more of it that ends
	}
	if n := of(stays, mayRun); n > 0 {
		first := ""
		for _, f := range stays {
			if f.fate == mayRun {
				first = fmt.Sprintf("%s (%s; %s)", f.Addr, f.Where(), f.why)
				break
			}
		}
		v.Say.Warn("left alone: %s whose containers may still run, such as %s", humanize.Plural(n, "lease"), first)
		v.Hint("the controller ends them once that is over; when a machine is off: bcsnetctl release-host HOST")
	}
	if n := of(stays, lives, noPod); n > 0 {
		v.Say.Note("left alone: %s of pods that live, or of owners that are no pods; --force ends them", humanize.Plural(n,
			"lease"))
	}
	if n := of(stays, isKept); n > 0 {
		v.Say.Note("left alone: %s that claims keep; --kept gives them back", humanize.Plural(n, "address"))
	}
}

// sums counts leases by what is known of their holders.
func sums(all []finding) string {
	if len(all) == 0 {
		return "nothing is in use"
	}
	var parts []string
	for _, part := range []struct {
		n    int
		what string
	}{
		{of(all, isGone), "of holders that are gone"}, {of(all, lives), "of pods that live"},
		{of(all, mayRun), "of pods that are gone and may still run"}, {of(all, noPod), "of holders that are no pods"},
		{of(all, unknown), "of pods that cannot be read"}, {of(all, isKept), "kept by claims"},
	} {
		if part.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", part.n, part.what))
		}
	}
	return humanize.Plural(addresses(all), "address") + ", " + strings.Join(parts, ", ")
}

// addresses counts addresses: both pods of a virtual machine that migrates have the same one.
func addresses(all []finding) int {
	seen := map[netip.Addr]bool{}
	for _, f := range all {
		seen[f.Addr] = true
	}
	return len(seen)
}
