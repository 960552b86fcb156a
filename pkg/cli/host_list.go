package cli

import (
	"context"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/bcsnet/bcsnet/pkg/ipam"
)

func newHost(s *session) *cobra.Command {
	cmd := &cobra.Command{
		Use: "host", Aliases: []string{"hosts"}, GroupID: "objects", Args: cobra.ArbitraryArgs, RunE: group,
		Short: "Hosts that draw addresses",
	}
	cmd.AddCommand(newHostList(s), newHostDescribe(s), newHostRelease(s))
	return cmd
}

type hostList struct {
	*session
	output output
}

func newHostList(s *session) *cobra.Command {
	v := &hostList{session: s}
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls", "get"}, Args: takes(0, 0), RunE: runs(v),
		Short: "List hosts: their nodes, pools and addresses in use",
		Long: `List the hosts of all pools, all nodes, and all hosts that hold addresses. STATE
is that of the node; gone means that no node has the host's IP. With -o name,
the host IPs alone, for bcsnetctl release-host.`,
		Example: `  bcsnetctl host list
  bcsnetctl host list -o jsonpath='{.items[?(@.state=="gone")].host}'`,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	v.output.addTo(cmd)
	return cmd
}

func (v *hostList) Complete([]string) error { return nil }

func (v *hostList) Validate() error { return v.output.validate() }

// States of a host.
const (
	hostReady    = "ready"
	hostNotReady = "not-ready"
	hostGone     = "gone"
)

// hostRow is one host.
type hostRow struct {
	host   netip.Addr
	node   string
	state  string // empty when the nodes cannot be read
	active int
	pools  []string
}

func (v *hostList) Run(ctx context.Context) error {
	rows, err := v.rows(ctx)
	if err != nil {
		return err
	}
	switch {
	case v.output.names():
		for _, r := range rows {
			if _, err := v.Out.Write([]byte(r.host.String() + "\n")); err != nil {
				return err
			}
		}
		return nil
	case v.output.printer != nil:
		return v.output.object(v.Out, hostObjects(rows))
	}
	if err := newTable(&v.output, hostColumns()).write(v.Out, rows); err != nil {
		return err
	}
	v.sumUp(rows)
	return nil
}

func (v *hostList) sumUp(rows []hostRow) {
	if len(rows) == 0 {
		v.say.note("no hosts in %s: neither nodes nor hosts of pools", v.where())
		return
	}
	gone, left := 0, 0
	var hosts []string
	for _, r := range rows {
		if r.state == hostGone && r.active > 0 {
			gone++
			left += r.active
			hosts = append(hosts, r.host.String())
		}
	}
	v.say.note("%s", plural(len(rows), "host"))
	if gone > 0 {
		v.say.warn("%s gone with %s in use", oneOr(gone, "host "+hosts[0]+" is", plural(gone, "host")+" are"), plural(left, "address"))
		v.hint("to free what hosts that are off hold: bcsnetctl release-host %s", strings.Join(hosts[:min(len(hosts), maxNamed)], " "))
	}
}

func hostColumns() []column[hostRow] {
	return []column[hostRow]{
		{name: "HOST", cell: func(r hostRow) string { return r.host.String() }},
		{name: "NODE", cell: func(r hostRow) string { return r.node }},
		{name: "STATE", cell: func(r hostRow) string { return r.state }},
		{name: "ACTIVE", cell: func(r hostRow) string { return strconv.Itoa(r.active) }},
		{name: "POOLS", cell: func(r hostRow) string { return strings.Join(r.pools, ",") }},
	}
}

// hostObjects is the list for -o json and the like. There is no such kind in the cluster: it is a view.
func hostObjects(rows []hostRow) *unstructured.UnstructuredList {
	l := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": programName + "/v1", "kind": "HostList"}}
	for _, r := range rows {
		l.Items = append(l.Items, unstructured.Unstructured{Object: map[string]any{
			"apiVersion": programName + "/v1", "kind": "Host",
			"host": r.host.String(), "node": r.node, "state": r.state, "active": int64(r.active), "pools": values(r.pools),
		}})
	}
	return l
}

// rows puts together what pools, addresses and nodes know of hosts, in order of their IPs.
func (v *hostList) rows(ctx context.Context) ([]hostRow, error) {
	all := map[netip.Addr]*hostRow{}
	row := func(h netip.Addr) *hostRow {
		if all[h] == nil {
			all[h] = &hostRow{host: h}
		}
		return all[h]
	}
	api, err := v.pools()
	if err != nil {
		return nil, err
	}
	pools, err := api.list(ctx, "")
	if err != nil {
		return nil, err
	}
	for _, p := range pools {
		for _, text := range p.Spec.Hosts {
			if h, err := ipam.ParseAddr(text); err == nil && !slices.Contains(row(h).pools, p.Name) {
				row(h).pools = append(row(h).pools, p.Name)
			}
		}
	}
	leases, err := v.leases()
	if err != nil {
		return nil, err
	}
	query := leaseQuery{status: ipam.Active.String()}
	if err := leases.Each(ctx, query.selector(), func(l ipam.Lease) error {
		if l.Host.IsValid() {
			row(l.Host).active++
		}
		return nil
	}); err != nil {
		return nil, v.explain(err)
	}
	nodes, err := v.nodes(ctx)
	if err != nil {
		v.say.warn("nodes cannot be read, so NODE and STATE are unknown: %v", err)
	} else {
		joinNodes(all, nodes)
	}
	var out []hostRow
	for _, r := range all {
		out = append(out, *r)
	}
	slices.SortFunc(out, func(a, b hostRow) int { return a.host.Compare(b.host) })
	return out, nil
}

// joinNodes gives every host its node. A node that is not known by any of its addresses gets a row of its own.
func joinNodes(all map[netip.Addr]*hostRow, nodes []node) {
	for _, r := range all {
		r.state = hostGone
	}
	for _, n := range nodes {
		known := false
		for _, a := range n.addrs {
			if r := all[a]; r != nil {
				r.node, r.state, known = n.name, n.state, true
			}
		}
		if !known && len(n.addrs) > 0 {
			all[n.addrs[0]] = &hostRow{host: n.addrs[0], node: n.name, state: n.state}
		}
	}
}
