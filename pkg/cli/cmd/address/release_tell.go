package address

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/leasing"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// fateText describes leases with a fate, and names the flag that releases them.
type fateText struct {
	fate       fate
	what, with string
}

// fates returns the texts in the order in which the counts are printed.
func fates() []fateText {
	return []fateText{
		{isGone, "of holders that are gone", ""}, {lives, "of pods that live", "--force"},
		{mayRun, "of pods that are gone but whose containers may still run", "--force"},
		{hasObject, "of objects that exist", "--force"},
		{noPod, "of holders that are not pods", "--force"}, {unread, "of pods that cannot be read", ""},
		{isKept, "kept by claims", "--kept"},
	}
}

// announce names the addresses that will be released, and those that are free already. For a selection it counts leases
// by fate, and says why some are left alone.
func (v *ipRelease) announce(j *judgement) {
	counted := v.by != nil && !v.by.single
	if counted {
		v.Say.Start("%s %s: %s", v.by.name, v.word, sums(slices.Concat(j.ends, j.stays)))
	}
	ends := app.Map(j.ends, v.ending)
	leasing.Announce(v.App, ends)
	if n := len(j.free); n > 0 {
		v.Say.Note("%s %s free already", resource.Spell(ipaddr.SetOfAddrs(distinct(leasesOf(j.free))...)),
			humanize.OneOr(n, "is", "are"))
	}
	if !counted {
		return
	}
	for _, row := range fates() {
		if n := count(j.stays, row.fate); n > 0 {
			v.Say.Note("not released: %s %s; to release %s: %s", humanize.Plural(n, "lease"), row.what,
				humanize.OneOr(n, "it", "them"), row.with)
		}
	}
	if i := first(j.stays, mayRun); i >= 0 {
		f := j.stays[i]
		v.Say.Warn("the pod of %s, %s, %s", f.Addr, f.Where(), f.pod.Text)
		v.Hint("the controller releases such addresses when the containers have certainly ended; " +
			"if a machine is off: bcsnetctl release-host HOST")
	}
	if len(j.ends) == 0 {
		v.Say.Note("nothing to release")
	}
}

// sums counts leases by fate.
func sums(all []finding) string {
	if len(all) == 0 {
		return "nothing is in use"
	}
	parts := []string{humanize.Plural(len(distinct(leasesOf(all))), "address")}
	for _, row := range fates() {
		if n := count(all, row.fate); n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, row.what))
		}
	}
	return strings.Join(parts, ", ")
}

// count counts the findings with a fate; first returns the index of the first one, or -1.
func count(all []finding, of fate) (n int) {
	for _, f := range all {
		if f.fate == of {
			n++
		}
	}
	return n
}

func first(all []finding, of fate) int {
	return slices.IndexFunc(all, func(f finding) bool { return f.fate == of })
}

// losers names the pods that live.
func losers(all []finding) (names []string) {
	for _, f := range all {
		if f.fate == lives {
			names = append(names, f.Who())
		}
	}
	return names
}

func (v *ipRelease) ending(f finding) leasing.Ending {
	l := f.Lease
	what := fmt.Sprintf("%s of pool %s: ", l.Addr, l.Pool)
	switch {
	case l.IsQuarantined():
		return leasing.Ending{Text: what + "quarantined, because " + l.Conflict.MAC +
			" answered for it; it returns to the pool"}
	case f.fate == isKept:
		return leasing.Ending{Text: what + resource.RetainedText(l) + "; no pod has it, and it returns to the pool"}
	}
	what += v.holders(l)
	switch {
	case v.by != nil && l.Other != nil:
		what += ", whose virtual machine " + resource.MigrationText(l)
	case l.KeptOnRelease() && !v.kept:
		what += ", by claim " + l.Claim + ", for which it stays reserved"
	}
	switch {
	case f.fate == unread:
		return leasing.Ending{
			Text: fmt.Sprintf("%s; it is unknown whether the pod lives: %v", what, f.err), Grave: true, Loser: l.Who(),
		}
	case f.fate == hasObject:
		return leasing.Ending{Text: what + "; the " + f.object.What() + " " + f.object.Text + " and loses the address",
			Grave: true, Loser: l.Who()}
	case f.object.Text != "":
		return leasing.Ending{Text: what + ", and the " + f.object.What() + " " + f.object.Text, Grave: v.by != nil}
	case f.fate == lives:
		return leasing.Ending{Text: what + "; the pod " + f.pod.Text + " and loses the address", Grave: true,
			Loser: l.Who()}
	case f.fate != noPod:
		return leasing.Ending{Text: what + "; the pod " + f.pod.Text, Grave: f.fate == mayRun}
	case l.Owner != "":
		return leasing.Ending{Text: what + ", which is not a pod", Grave: v.by != nil}
	}
	return leasing.Ending{Text: what + "; its pod is unknown", Grave: v.by != nil}
}

// holders names the holder of an address and its host: two pods during a live migration.
func (v *ipRelease) holders(l lease.Lease) string {
	if v.by != nil {
		return l.Where()
	}
	var all []string
	for side := range l.Attachments() {
		all = append(all, side.Where())
	}
	return strings.Join(all, " and ")
}
