package ui

import (
	"context"
	"fmt"
	"net"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/cli/ui"
	"github.com/bcsnet/bcsnet/pkg/cli/view"
)

type verb struct {
	*app.App
	port      uint16
	noBrowser bool
	shared
	prometheus view.Prometheus
	// pages has the values of the flags that name a page, by flag.
	pages map[string]*string
}

// flags returns the flags that name a page, with the kind of its object.
func flags() []struct{ name, what, kind string } {
	return []struct{ name, what, kind string }{
		{"pool", "open the page of this `POOL`", "pool"}, {"ip", "open the page of this `ADDRESS`", "ip"},
		{"host", "open the page of this `HOST`, an IP or a node", "host"},
		{"namespace", "open the page of this `NAMESPACE`", "namespace"},
		{"claim", "open the page of this `CLAIM`, as NAMESPACE/NAME", "claim"},
		{"network", "open the page of this `NETWORK`", "network"},
		{"why", "open the page that says why this `POD`, NAMESPACE/POD, has its address", "pod"},
	}
}

// New returns the command ui.
func New(s *app.App) *cobra.Command {
	v := &verb{App: s, pages: map[string]*string{}}
	cmd := &cobra.Command{
		Use: "ui", GroupID: "objects", Args: app.Takes(0, 0), RunE: app.Runs(v),
		ValidArgsFunction: cobra.NoFileCompletions,
		Short:             "Show pools, addresses, hosts and problems as pages in a browser",
		Long: `Show pools, addresses, hosts, claims and problems as live pages in a browser.
They are served only on this machine, with the rights of your kubeconfig, and
change nothing. Ctrl-C ends that.

The link that is printed lets one browser in, once. If somebody else follows it,
too, both are logged out, and a new link is printed. Without a display the
command prints the line for ssh that brings the pages to another machine.

With --listen it serves many users by HTTPS, as the chart does in a cluster with
ui.enabled. Each of them logs in by a token, and sees what that token may read.
With --url it only opens a page of such a server.

With --prometheus the pages say by the metrics of the last day when pools are
full; without it, by when the leases began that exist.`,
		Example: `  bcsnetctl ui
  bcsnetctl ui --pool blue
  bcsnetctl ui --ip 10.0.0.20
  bcsnetctl ui --why shop/db-0 --no-browser --port 8090
  bcsnetctl ui --pool blue --url https://pools.example.com
  bcsnetctl ui --prometheus https://prometheus.example.com
  bcsnetctl ui --listen :8443 --tls-cert-file tls.crt --tls-private-key-file tls.key`,
	}
	f := cmd.Flags()
	f.Uint16Var(&v.port, "port", 0, "the `PORT` on this machine; 0 takes a free one")
	f.BoolVar(&v.noBrowser, "no-browser", false, "print the link, and do not open it")
	v.shared.addTo(cmd)
	v.prometheus.AddTo(cmd)
	for _, one := range flags() {
		v.pages[one.name] = f.String(one.name, "", one.what)
	}
	app.CompleteWith(cmd, "pool", resource.CompletePools(s))
	app.CompleteWith(cmd, "host", resource.CompleteHosts(s))
	app.CompleteWith(cmd, "namespace", resource.CompleteNamespaces(s))
	app.CompleteWith(cmd, "network", resource.CompleteNetworks(s))
	return cmd
}

func (v *verb) Complete([]string) error { return nil }

func (v *verb) Validate() error {
	var given []string
	for _, one := range flags() {
		if *v.pages[one.name] != "" {
			given = append(given, "--"+one.name)
		}
	}
	if len(given) > 1 {
		return app.Usagef("%s name two pages: give one of them", strings.Join(given, " and "))
	}
	if ip := *v.pages["ip"]; ip != "" && view.PagePath("ip", ip) == "" {
		return app.Usagef("--ip %q is not an address", ip)
	}
	if claim := *v.pages["claim"]; claim != "" && strings.Count(claim, "/") != 1 {
		return app.Usagef("--claim %q is not NAMESPACE/NAME", claim)
	}
	if err := v.shared.validate(given, v.port != 0 || v.noBrowser); err != nil {
		return err
	}
	return v.prometheus.Validate()
}

// page returns the path of the page to open.
func (v *verb) page() string {
	for _, one := range flags() {
		if value := *v.pages[one.name]; value != "" {
			return view.PagePath(one.kind, value)
		}
	}
	return "/"
}

func (v *verb) Run(ctx context.Context) error {
	switch {
	case v.listen != "":
		return v.shared.serve(ctx, v.App, &v.prometheus)
	case v.at != nil:
		return v.visit(ctx, v.at.String()+v.page())
	}
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", v.port))
	if err != nil {
		return (&app.Failure{Message: "the pages cannot be served: " + err.Error(), Cause: err}).
			WithHint("leave out --port, or name another one")
	}
	defer l.Close()
	server, err := ui.New(v.App, func(token string) {
		v.Say.Warn("the link was followed twice, so both who did are out. A new one:")
		v.Say.Note("  %s", ui.URL(l, ui.Link(token, "/")))
	})
	if err != nil {
		return err
	}
	server.Prometheus = &v.prometheus
	link := ui.URL(l, ui.Link(server.Token(), v.page()))
	if _, err := fmt.Fprintln(v.Out, link); err != nil {
		return err
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	switch opened := !v.noBrowser && v.Display() && open(ctx, link) == nil; {
	case opened:
		v.Say.Note("the pages of %s are open in your browser; Ctrl-C ends this", v.Where())
	default:
		v.Say.Note("follow the link to see %s; Ctrl-C ends this", v.Where())
		v.Hint("from another machine first run: ssh -L %s:127.0.0.1:%s %s", port, port, v.ThisMachine())
	}
	if err := server.Serve(ctx, l); err != nil && ctx.Err() == nil {
		return err
	}
	v.Say.Note("the pages are closed")
	return nil
}
