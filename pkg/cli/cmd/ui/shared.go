package ui

import (
	"context"
	"fmt"
	"net"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/ui"
	"github.com/bcsnet/bcsnet/pkg/cli/view"
)

// shared holds the flags of a server for many users.
type shared struct {
	listen, certFile, keyFile, url string
	// at is url after parsing; nil if it is not set.
	at *url.URL
}

func (o *shared) addTo(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.listen, "listen", "", "serve many users by HTTPS on this `ADDRESS`, such as :8443")
	f.StringVar(&o.certFile, "tls-cert-file", "",
		"with --listen: the `FILE` with the certificate; it is read again when it changes")
	f.StringVar(&o.keyFile, "tls-private-key-file", "",
		"with --listen: the `FILE` with its private key, which also seals the cookies: the same for all replicas")
	f.StringVar(&o.url, "url", "", "the `URL` at which users find the pages of a cluster; "+
		"without --listen the page there is opened")
	app.Complete(cmd, "listen")
	app.Complete(cmd, "url")
}

// validate parses the flags. pages are the given flags that name a page. alone means that a flag for a local server was
// given.
func (o *shared) validate(pages []string, alone bool) error {
	var err error
	if o.at, err = view.PagesURL("url", o.url); err != nil {
		return err
	}
	switch files := o.certFile != "" || o.keyFile != ""; {
	case o.listen == "" && files:
		return app.Usagef("--tls-cert-file and --tls-private-key-file go with --listen")
	case o.listen == "":
		return nil
	case o.certFile == "" || o.keyFile == "":
		return app.Usagef("--listen takes --tls-cert-file and --tls-private-key-file: tokens are sent to this server")
	case alone || len(pages) > 0:
		return app.Usagef("--listen serves other machines, so it goes with no flag that opens a page here")
	}
	return nil
}

// serve runs a server for many users until the context ends.
func (o *shared) serve(ctx context.Context, s *app.App, trends *view.Prometheus) error {
	l, err := net.Listen("tcp", o.listen)
	if err != nil {
		return (&app.Failure{Message: "the pages cannot be served: " + err.Error(), Cause: err}).
			WithHint("name another address with --listen")
	}
	defer l.Close()
	s.Say.Note("the pages are served at %s by HTTPS", l.Addr())
	err = ui.Shared{CertFile: o.certFile, KeyFile: o.keyFile, URL: o.at, Prometheus: trends}.Serve(ctx, s, l)
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// visit opens a page of an existing server.
func (v *verb) visit(ctx context.Context, link string) error {
	if _, err := fmt.Fprintln(v.Out, link); err != nil || v.noBrowser || !v.Display() {
		return err
	}
	if err := open(ctx, link); err != nil {
		v.Say.Warn("no browser could be opened: %v", err)
	}
	return nil
}
