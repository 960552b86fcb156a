package pool

import (
	"context"
	"strings"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// held has the addresses of exported pools that are not free.
type held struct {
	// reserved and owned are exported with their pools.
	reserved, owned []lease.Lease
	// ofPods, kept and quarantined count addresses that are not exported.
	ofPods, kept, quarantined int
}

// listHeld lists the addresses by pool.
func listHeld(ctx context.Context, s *app.App) (map[string]held, error) {
	taken := func(l lease.Lease) bool { return l.State != lease.Available }
	all, err := resource.HeldLeases(ctx, s, resource.LeaseQuery{Selectors: resource.TakenOnly()}, taken)
	out := map[string]held{}
	for _, l := range all {
		h := out[l.Pool]
		switch {
		case l.IsSetAside():
			h.reserved = append(h.reserved, l)
		case l.IsQuarantined():
			h.quarantined++
		case l.IsRetained():
			h.kept++
		case ownedByNoPod(l):
			h.owned = append(h.owned, l)
		default:
			h.ofPods++
		}
		out[l.Pool] = h
	}
	return out, err
}

func (h *held) add(o held) {
	h.reserved, h.owned = append(h.reserved, o.reserved...), append(h.owned, o.owned...)
	h.ofPods, h.kept, h.quarantined = h.ofPods+o.ofPods, h.kept+o.kept, h.quarantined+o.quarantined
}

// say prints what else the export contains, what it lacks, and how to restore that.
func (h *held) say(s *app.App) {
	in := counted(
		count{len(h.reserved), "reserved address", "reserved addresses", ""},
		count{len(h.owned), "address of an owner", "addresses of owners", ""})
	if in != "" {
		s.Say.Note("in it: %s; %s pool import -f FILE makes them again, kubectl apply makes the pools alone", in,
			s.Name)
	}
	out := counted(
		count{h.ofPods, "address of a pod", "addresses of pods", s.Called("bcsnetctl rebuild") +
			" makes them again, or a controller that starts"},
		count{h.kept, "address that a claim keeps", "addresses that claims keep",
			"neither are the claims: kubectl get bcsnetipclaims -A -o yaml"},
		count{h.quarantined, "quarantined address", "quarantined addresses", "that ends by itself"})
	if out != "" {
		s.Say.Note("not in it: %s; nor is the history of addresses", out)
	}
}

type count struct {
	n               int
	one, more, note string
}

// counted lists the counts that are not zero.
func counted(all ...count) string {
	var parts []string
	for _, c := range all {
		if c.n == 0 {
			continue
		}
		text := app.Count(int64(c.n)) + " " + humanize.OneOr(c.n, c.one, c.more)
		if c.note != "" {
			text += " (" + c.note + ")"
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}
