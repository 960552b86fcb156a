package resource

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

// HostArgs holds the hosts of a command: IPs, files with IPs, and nodes.
type HostArgs struct {
	words    []string
	files    []string
	selector string
	Nodes    []string

	// Hosts were given as IPs. Names were given instead of IPs, and may be nodes.
	Hosts []netip.Addr
	Names []string
}

// HostArgsHelp explains the arguments in a command's help.
const HostArgsHelp = `HOST is the IP of a host; - reads hosts from standard input, and -f from a file,
one a line. --selector and --node take the internal IPs of nodes.`

// AddTo adds the flags for hosts to a command.
func (h *HostArgs) AddTo(s *app.App, cmd *cobra.Command) {
	cmd.Flags().StringArrayVarP(&h.files, "filename", "f", nil, "`FILE` with hosts, one a line; repeatable")
	cmd.Flags().StringVarP(&h.selector, "selector", "l", "", "nodes with these `LABELS`, as in kubectl")
	cmd.Flags().StringArrayVar(&h.Nodes, "node", nil, "`NAME` of a node; repeatable")
	app.Complete(cmd, "selector")
	app.CompleteWith(cmd, "node", CompleteNodes(s))
}

// Read collects the words of the arguments, files and standard input.
func (h *HostArgs) Read(s *app.App, args []string) error {
	words, err := ArgsOrLines(s, "hosts", args)
	if err != nil {
		return err
	}
	h.words = words
	for _, name := range h.files {
		lines, err := readLinesOf(s, name)
		if err != nil {
			return err
		}
		h.words = append(h.words, lines...)
	}
	return nil
}

// readLinesOf reads the lines of a file; - is standard input.
func readLinesOf(s *app.App, name string) ([]string, error) {
	if name == "-" {
		return ArgsOrLines(s, "hosts", []string{"-"})
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, &app.Failure{Message: err.Error(), Cause: err}
	}
	defer f.Close()
	lines, err := ReadLines(f)
	if err != nil {
		return nil, fmt.Errorf("reading hosts from %s: %w", name, err)
	}
	return lines, nil
}

// Validate sorts the words into IPs of hosts and names of nodes. typed is the number of arguments.
func (h *HostArgs) Validate(typed int) (err error) {
	if typed+len(h.files)+len(h.Nodes) == 0 && h.selector == "" {
		return app.Usagef("no hosts are named: give HOST arguments, --node, --selector or -f")
	}
	if _, err := labels.Parse(h.selector); err != nil {
		return app.Usagef("--selector %q: %v", h.selector, err)
	}
	var addrs []string
	for _, w := range h.words {
		if MayBeNode(w) {
			h.Names = append(h.Names, w)
		} else {
			addrs = append(addrs, w)
		}
	}
	h.Hosts, err = ParseHosts(addrs)
	return err
}

// MayBeNode reports whether a word is not an address but a possible name of a node.
func MayBeNode(word string) bool {
	_, err := ipaddr.ParseAddr(word)
	return err != nil && strings.ContainsFunc(word, unicode.IsLetter) &&
		len(validation.NameIsDNSSubdomain(word, false)) == 0
}

// Matched returns the nodes of --node and --selector, and prints the latter. It fails if a node is missing, has no
// internal IP, or if the selector matches none.
func (h *HostArgs) Matched(ctx context.Context, s *app.App) ([]Node, error) {
	if len(h.Names) > 0 {
		return nil, nodeForHost(ctx, s, h.Names[0])
	}
	var found []Node
	for _, name := range h.Nodes {
		n, err := GetNode(ctx, s, name)
		if err != nil {
			return nil, err
		}
		found = append(found, n)
	}
	if h.selector != "" {
		selected, err := ListNodesWith(ctx, s, h.selector)
		switch {
		case err != nil:
			return nil, err
		case len(selected) == 0:
			return nil, app.Refuse(app.ReasonNodeNotFound, "no node in %s has the labels %s", s.Where(), h.selector).
				WithHint("see them: kubectl get nodes --show-labels")
		}
		names := app.Map(selected,
			func(n Node) string { return fmt.Sprintf("%s (%s)", n.Name, printer.OrNone(JoinAddrs(n.Internal))) })
		s.Say.Note("%s with the labels %s: %s", humanize.Plural(len(selected), "node"), h.selector,
			humanize.List(names))
		found = append(found, selected...)
	}
	for _, n := range found {
		if len(n.Internal) == 0 {
			return nil, app.Refuse(app.ReasonNodeNotFound, "node %s has no internal IP", n.Name).
				WithHint("see its addresses: kubectl get node %s -o wide", n.Name)
		}
	}
	return found, nil
}

// nodeForHost returns the error for a node's name given instead of a host's IP.
func nodeForHost(ctx context.Context, s *app.App, name string) error {
	_, err := ParseHosts([]string{name})
	n, unknown := GetNode(ctx, s, name)
	if unknown != nil || len(n.Internal) == 0 {
		return err
	}
	return app.Usagef("%s is a node, and a host is named by its IP", name).
		WithHint("its IP is %s; or write --node %s", JoinAddrs(n.Internal), name)
}

// WithFirst returns hosts and the first internal IP of each node, without duplicates.
func WithFirst(hosts []netip.Addr, nodes []Node) []netip.Addr {
	out := slices.Clone(hosts)
	for _, n := range nodes {
		if !slices.Contains(out, n.Internal[0]) {
			out = append(out, n.Internal[0])
		}
	}
	return out
}

// WithAll returns hosts and all internal IPs of nodes, without duplicates.
func WithAll(hosts []netip.Addr, nodes []Node) []netip.Addr {
	out := slices.Clone(hosts)
	for _, n := range nodes {
		for _, a := range n.Internal {
			if !slices.Contains(out, a) {
				out = append(out, a)
			}
		}
	}
	return out
}
