package cli

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

	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

// hostArgs are the hosts that a command is about: their IPs, files of them, and nodes.
type hostArgs struct {
	words    []string
	files    []string
	selector string
	nodes    []string

	// hosts were named by their IPs. names were typed in place of IPs and may be those of nodes.
	hosts []netip.Addr
	names []string
}

// hostArgsHelp is what the help of such a command says of them.
const hostArgsHelp = `HOST is the IP of a host; - reads hosts from standard input, and -f from a file,
one a line. --selector and --node take the internal IPs of nodes.`

func (h *hostArgs) addTo(s *session, cmd *cobra.Command) {
	cmd.Flags().StringArrayVarP(&h.files, "filename", "f", nil, "`FILE` with hosts, one a line; repeatable")
	cmd.Flags().StringVarP(&h.selector, "selector", "l", "", "nodes with these `LABELS`, as in kubectl")
	cmd.Flags().StringArrayVar(&h.nodes, "node", nil, "`NAME` of a node; repeatable")
	complete(cmd, "selector")
	completeWith(cmd, "node", s.completeNodes)
}

// read takes the words that were typed, and those that files and standard input hold.
func (h *hostArgs) read(s *session, args []string) error {
	words, err := s.orLines("hosts", args)
	if err != nil {
		return err
	}
	h.words = words
	for _, name := range h.files {
		lines, err := s.linesOf(name)
		if err != nil {
			return err
		}
		h.words = append(h.words, lines...)
	}
	return nil
}

// linesOf reads the lines of a file; - is standard input.
func (s *session) linesOf(name string) ([]string, error) {
	if name == "-" {
		return s.orLines("hosts", []string{"-"})
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, &failure{message: err.Error(), cause: err}
	}
	defer f.Close()
	lines, err := readLines(f)
	if err != nil {
		return nil, fmt.Errorf("reading hosts from %s: %w", name, err)
	}
	return lines, nil
}

func (h *hostArgs) validate(typed int) (err error) {
	if typed+len(h.files)+len(h.nodes) == 0 && h.selector == "" {
		return usagef("name hosts, or --node, --selector or -f")
	}
	if _, err := labels.Parse(h.selector); err != nil {
		return usagef("--selector %q: %v", h.selector, err)
	}
	var addrs []string
	for _, w := range h.words {
		if mayBeNode(w) {
			h.names = append(h.names, w)
		} else {
			addrs = append(addrs, w)
		}
	}
	h.hosts, err = parseHosts(addrs)
	return err
}

// mayBeNode is true for a word that is no address and could be the name of a node.
func mayBeNode(word string) bool {
	_, err := ipaddr.ParseAddr(word)
	return err != nil && strings.ContainsFunc(word, unicode.IsLetter) && len(validation.NameIsDNSSubdomain(word, false)) == 0
}

// matched finds the nodes that were asked for, and says which ones. None at all is an error.
func (h *hostArgs) matched(ctx context.Context, s *session) ([]node, error) {
	if len(h.names) > 0 {
		return nil, s.nodeForHost(ctx, h.names[0])
	}
	var found []node
	for _, name := range h.nodes {
		n, err := s.node(ctx, name)
		if err != nil {
			return nil, err
		}
		found = append(found, n)
	}
	if h.selector != "" {
		selected, err := s.nodesWith(ctx, h.selector)
		switch {
		case err != nil:
			return nil, err
		case len(selected) == 0:
			return nil, refuse(reasonNodeNotFound, "no node in %s has the labels %s", s.where(), h.selector).
				withHint("see them: kubectl get nodes --show-labels")
		}
		var names []string
		for _, n := range selected {
			names = append(names, fmt.Sprintf("%s (%s)", n.name, orNone(joinAddrs(n.internal))))
		}
		s.say.note("%s with the labels %s: %s", humanize.Plural(len(selected), "node"), h.selector, humanize.List(names))
		found = append(found, selected...)
	}
	for _, n := range found {
		if len(n.internal) == 0 {
			return nil, refuse(reasonNodeNotFound, "node %s has no internal IP", n.name).withHint("see its addresses: kubectl get node %s -o wide", n.name)
		}
	}
	return found, nil
}

// nodeForHost is the error for a node's name in place of a host's IP.
func (s *session) nodeForHost(ctx context.Context, name string) error {
	_, err := parseHosts([]string{name})
	n, unknown := s.node(ctx, name)
	if unknown != nil || len(n.internal) == 0 {
		return err
	}
	return usagef("%s is a node, and a host is named by its IP", name).
		withHint("its IP is %s; or write --node %s", joinAddrs(n.internal), name)
}

func joinAddrs(all []netip.Addr) string {
	var out []string
	for _, a := range all {
		out = append(out, a.String())
	}
	return strings.Join(out, ", ")
}

// withFirst are hosts and the first internal IPs of nodes, each once.
func withFirst(hosts []netip.Addr, nodes []node) []netip.Addr {
	out := slices.Clone(hosts)
	for _, n := range nodes {
		if !slices.Contains(out, n.internal[0]) {
			out = append(out, n.internal[0])
		}
	}
	return out
}

// withAll are hosts and all internal IPs of nodes, each once.
func withAll(hosts []netip.Addr, nodes []node) []netip.Addr {
	out := slices.Clone(hosts)
	for _, n := range nodes {
		for _, a := range n.internal {
			if !slices.Contains(out, a) {
				out = append(out, a)
			}
		}
	}
	return out
}
