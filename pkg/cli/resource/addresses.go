package resource

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// AtOnce bounds the concurrent requests for single objects.
const AtOnce = 16

// Under sets the group in the examples of a command that ip and lease share.
func Under(group string, cmd *cobra.Command) *cobra.Command {
	cmd.Example = strings.ReplaceAll(cmd.Example, app.ProgramName+" ip ", app.ProgramName+" "+group+" ")
	return cmd
}

// ArgsOrLines returns the arguments. It replaces "-" by the lines of standard input.
func ArgsOrLines(s *app.App, what string, args []string) ([]string, error) {
	var out []string
	for _, arg := range args {
		if arg != "-" {
			out = append(out, arg)
			continue
		}
		lines, err := ReadLines(s.In)
		if err != nil {
			return nil, fmt.Errorf("reading %s from standard input: %w", what, err)
		}
		out = append(out, lines...)
	}
	return out, nil
}

// ReadLines reads lines. It skips blank lines and comments after #.
func ReadLines(r io.Reader) ([]string, error) {
	var out []string
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		text, _, _ := strings.Cut(lines.Text(), "#")
		if text = strings.TrimSpace(text); text != "" {
			out = append(out, text)
		}
	}
	return out, lines.Err()
}

// AddressesOf lists the addresses of entries in their order.
func AddressesOf(entries []Entry) []netip.Addr {
	var out []netip.Addr
	for _, e := range entries {
		for a := e.From(); a.IsValid() && a.Compare(e.To()) <= 0; a = a.Next() {
			out = append(out, a)
		}
	}
	return out
}

// ReadAddresses reads addresses. One without an object is Available and has version 0.
func ReadAddresses(ctx context.Context, s *app.App, leases *store.Client, addrs []netip.Addr) ([]lease.Lease, error) {
	out := make([]lease.Lease, len(addrs))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(AtOnce)
	for i, a := range addrs {
		group.Go(func() (err error) {
			if out[i], err = leases.Get(ctx, a); errors.Is(err, store.ErrNotFound) && !NoSuchResource(err) {
				out[i], err = lease.Lease{Addr: a}, nil
			}
			return err
		})
	}
	return out, Explain(s, group.Wait())
}

// TakenOnly selects the addresses that are in use or reserved.
func TakenOnly() Selectors {
	return Selectors{Fields: "status.status!=" + lease.Available.String()}
}

// PoolIndex returns an index of all pools, to find the pool that serves an address. If pools overlap, that depends on
// the addresses that they hold, so the index has the held addresses of overlapping pools, but no others.
func PoolIndex(ctx context.Context, s *app.App) (*index.Index, error) {
	all, err := AllPools(ctx, s)
	if err != nil {
		return nil, err
	}
	x := IndexOf(s, all)
	for _, p := range all {
		if len(x.Pools.Overlaps(p.Name)) == 0 {
			continue
		}
		held, err := HeldLeases(ctx, s, LeaseQuery{Pool: p.Name, Selectors: TakenOnly()},
			func(lease.Lease) bool { return true })
		if err != nil {
			return nil, err
		}
		for _, l := range held {
			x.Feed.Wrote(l)
		}
	}
	return x, nil
}

// JoinAddrs returns addresses separated by commas.
func JoinAddrs(all []netip.Addr) string {
	out := app.Map(all, netip.Addr.String)
	return strings.Join(out, ", ")
}
