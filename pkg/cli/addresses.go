package cli

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
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/dynamic"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// atOnce is how many requests for single addresses are under way at a time.
const atOnce = 16

// under has the examples of a command speak of the group that it is in: ip and lease share commands.
func under(group string, cmd *cobra.Command) *cobra.Command {
	cmd.Example = strings.ReplaceAll(cmd.Example, programName+" ip ", programName+" "+group+" ")
	return cmd
}

// orLines are arguments with, in place of "-", the lines of standard input.
func (s *session) orLines(what string, args []string) ([]string, error) {
	var out []string
	for _, arg := range args {
		if arg != "-" {
			out = append(out, arg)
			continue
		}
		lines, err := readLines(s.In)
		if err != nil {
			return nil, fmt.Errorf("reading %s from standard input: %w", what, err)
		}
		out = append(out, lines...)
	}
	return out, nil
}

// readLines reads lines; blank ones and those after # do not count.
func readLines(r io.Reader) ([]string, error) {
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

// addressesOf lists the addresses of entries in the order in which they were typed.
func addressesOf(entries []entry) []netip.Addr {
	var out []netip.Addr
	for _, e := range entries {
		for a := e.From(); a.IsValid() && a.Compare(e.To()) <= 0; a = a.Next() {
			out = append(out, a)
		}
	}
	return out
}

// read reads addresses as they are now. One that has no object is free, of version 0.
func (s *session) read(ctx context.Context, leases *store.Client, addrs []netip.Addr) ([]ipam.Lease, error) {
	out := make([]ipam.Lease, len(addrs))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i, a := range addrs {
		group.Go(func() (err error) {
			if out[i], err = leases.Get(ctx, a); errors.Is(err, store.ErrNotFound) && !noSuchResource(err) {
				out[i], err = ipam.Lease{Addr: a}, nil
			}
			return err
		})
	}
	return out, s.explain(group.Wait())
}

// plans is an index of all pools and of no addresses: it knows which pool serves an address.
func (s *session) plans(ctx context.Context) (*ipam.Index, error) {
	all, err := s.readPools(ctx)
	if err != nil {
		return nil, err
	}
	x := ipam.NewIndex()
	for _, p := range all {
		x.SetPool(store.Pool(p.BCSNetPool))
	}
	return x, nil
}

// podStates reads the pods of leases; one that cannot be read has an error.
func (s *session) podStates(ctx context.Context, leases []ipam.Lease) ([]podState, []error) {
	states, failed := make([]podState, len(leases)), make([]error, len(leases))
	var c dynamic.Interface
	var group errgroup.Group
	group.SetLimit(atOnce)
	for i, l := range leases {
		if l.State != ipam.Active || l.PodName == "" {
			continue
		}
		if c == nil {
			if c, failed[i] = s.dynamic(); failed[i] != nil {
				break
			}
		}
		pods := c.Resource(corev1.SchemeGroupVersion.WithResource("pods"))
		group.Go(func() error {
			states[i], failed[i] = podStateOf(ctx, pods, l)
			return nil
		})
	}
	_ = group.Wait() // what failed is in failed
	for i, err := range failed {
		failed[i] = s.explain(err)
	}
	return states, failed
}

// inBulk changes addresses, several at once, and keeps what became of each. Once the user interrupts,
// no further change begins.
func inBulk(ctx context.Context, leases []ipam.Lease, do func(int, ipam.Lease) error) []error {
	failed := make([]error, len(leases))
	var group errgroup.Group
	group.SetLimit(atOnce)
	for i, l := range leases {
		group.Go(func() error {
			if failed[i] = ctx.Err(); failed[i] == nil {
				failed[i] = do(i, l)
			}
			return nil
		})
	}
	_ = group.Wait() // what failed is in failed
	return failed
}

// none is the error for addresses of which nothing was done, because not all can be. Few reasons are spelt out.
func (s *session) none(n int, done string, failed several) error {
	if n > 1 {
		s.say.warn("none of the %s was %s:", plural(n, "address"), done)
	}
	if more := len(failed) - maxNamed; more > 0 {
		failed = append(failed[:maxNamed], fmt.Errorf("and %s", plural(more, "more address")))
	}
	return failed
}

// unfinished is the error for addresses of which some were not changed; nil when all were. done is what
// was to become of them.
func (s *session) unfinished(ctx context.Context, done string, leases []ipam.Lease, failed []error) error {
	var left []netip.Addr
	var first error
	for i, err := range failed {
		if err != nil {
			left = append(left, leases[i].Addr)
			if first == nil {
				first = err
			}
		}
	}
	if len(left) == 0 {
		return nil
	}
	f := &failure{cause: first, hint: "run it again: it does the rest"}
	f.message = fmt.Sprintf("%s was not %s", left[0], done)
	if len(leases) > 1 {
		f.message = fmt.Sprintf("%d of %s %s, not %s", len(leases)-len(left), plural(len(leases), "address"), done, spell(setOfAddrs(left)))
	}
	var r *ipam.Refusal
	var known *failure
	switch {
	case ctx.Err() != nil:
		f.cause = nil
	case errors.As(first, &known):
		f.reason, f.hint, f.code = known.reason, known.hint, known.code
		f.message += ": " + known.message
	case errors.As(first, &r):
		f.reason = r.Reason
		f.message += ": " + r.Message
		if r.Reason == ipam.ReasonForbidden {
			f.hint = hintRights
		}
	default:
		f.message += ": " + first.Error()
	}
	return f
}
