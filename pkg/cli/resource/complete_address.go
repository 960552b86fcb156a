package resource

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// maxOffered bounds the addresses of one completion.
const maxOffered = 200

// CompleteAddresses offers addresses of the given states that are not named yet, with their holders.
func CompleteAddresses(s *app.App, states ...lease.State) app.Completer {
	queries := app.Map(states, func(state lease.State) LeaseQuery { return LeaseQuery{Status: state.String()} })
	return CompleteLeases(s, queries...)
}

// CompleteLeases offers the addresses of queries that are not named yet, with their holders.
func CompleteLeases(s *app.App, queries ...LeaseQuery) app.Completer {
	return s.Offer(func(ctx context.Context, args []string) (out []string, err error) {
		for _, query := range queries {
			found, err := offeredLeases(ctx, s, query)
			if err != nil {
				return nil, err
			}
			for _, l := range found {
				if !slices.Contains(args, l.Addr.String()) {
					out = append(out, cobra.CompletionWithDesc(l.Addr.String(), leaseInShort(l)))
				}
			}
		}
		return out[:min(len(out), maxOffered)], nil
	})
}

// CompleteEndpoints offers as the first argument the pods with addresses (NAMESPACE/POD), the owners and the addresses.
func CompleteEndpoints(s *app.App) app.Completer {
	return app.First(func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		return s.Offer(func(ctx context.Context, _ []string) (out []string, err error) {
			held, err := offeredLeases(ctx, s, LeaseQuery{Status: lease.Active.String()})
			var addresses []string
			seen := map[string]bool{}
			for _, l := range held {
				addresses = append(addresses, cobra.CompletionWithDesc(l.Addr.String(), leaseInShort(l)))
				if who := l.Who(); (l.PodName != "" || l.Owner != "") && !seen[who] {
					seen[who] = true
					out = append(out, cobra.CompletionWithDesc(who, "has "+l.Addr.String()))
				}
			}
			out = slices.DeleteFunc(append(out, addresses...),
				func(o string) bool { return !strings.HasPrefix(o, typed) })
			return out[:min(len(out), maxOffered)], err
		})(cmd, args, typed)
	})
}

// offeredLeases lists the first maxOffered leases of a query.
func offeredLeases(ctx context.Context, s *app.App, query LeaseQuery) (out []lease.Lease, err error) {
	c, err := s.Dynamic()
	if err != nil {
		return nil, err
	}
	page, err := c.Resource(Of(v1.IPResource)).List(ctx,
		metav1.ListOptions{FieldSelector: query.Selector(), Limit: maxOffered})
	if err != nil {
		return nil, err
	}
	for i := range page.Items {
		if l, err := ReadLease(&page.Items[i]); err == nil {
			out = append(out, l)
		}
	}
	return out, nil
}

// leaseInShort describes the holder of an address in a few words.
func leaseInShort(l lease.Lease) string {
	if l.State == lease.Active {
		return l.Where()
	}
	text := "reserved"
	if l.Claim != "" {
		text = "kept for claim " + l.Claim
	}
	if c := l.Reservation(); c.Reason != "" {
		text += ": " + c.Reason
	}
	return text
}
