package resource

import (
	"context"
	"slices"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// maxOffered is how many addresses one press of the tab key offers.
const maxOffered = 200

// CompleteAddresses offers addresses of the given states that are not named yet, with who holds them.
func CompleteAddresses(s *app.App, states ...lease.State) app.Completer {
	var queries []LeaseQuery
	for _, state := range states {
		queries = append(queries, LeaseQuery{Status: state.String()})
	}
	return CompleteLeases(s, queries...)
}

// CompleteLeases offers the addresses that queries find and that are not named yet, with who holds them.
func CompleteLeases(s *app.App, queries ...LeaseQuery) app.Completer {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		return s.Offer(cmd, func(ctx context.Context) ([]string, error) {
			c, err := s.Dynamic()
			if err != nil {
				return nil, err
			}
			var out []string
			for _, query := range queries {
				page, err := c.Resource(Of(v1.IPResource)).List(ctx,
					metav1.ListOptions{FieldSelector: query.Selector(), Limit: maxOffered})
				if err != nil {
					return nil, err
				}
				for i := range page.Items {
					if l, err := ReadLease(&page.Items[i]); err == nil && !slices.Contains(args, l.Addr.String()) {
						out = append(out, cobra.CompletionWithDesc(l.Addr.String(), leaseInShort(l)))
					}
				}
			}
			return out[:min(len(out), maxOffered)], nil
		})
	}
}

// leaseInShort describes in a few words who has an address.
func leaseInShort(l lease.Lease) string {
	if l.State == lease.Active {
		return l.Where()
	}
	text := "reserved"
	if l.Claim != "" {
		text = "kept for claim " + l.Claim
	}
	if c := Reservation(l); c.Reason != "" {
		text += ": " + c.Reason
	}
	return text
}

// Reservation returns who set a reserved address aside and why, as far as its history shows.
func Reservation(l lease.Lease) lease.Change {
	if past := l.History.Entries(); l.State == lease.Reserved && len(past) > 0 && past[0].Verb == lease.VerbReserve {
		return past[0].Change
	}
	return lease.Change{}
}
