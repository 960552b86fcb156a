package view

import (
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

// PagePath returns the path of the page of an object; empty if its kind has none. kind is in lower case.
func PagePath(kind, name string) string {
	switch kind {
	case "pool", "bcsnetpool":
		return "/pool/" + url.PathEscape(name)
	case "address", "bcsnetip", "ip":
		if a, err := ipaddr.ParseAddr(name); err == nil {
			return "/ip/" + a.String()
		}
	case "host", "node":
		return "/host/" + url.PathEscape(name)
	case "namespace":
		return "/namespace/" + url.PathEscape(name)
	case "network":
		return "/network/" + url.PathEscape(name)
	case "claim", "bcsnetipclaim":
		if namespace, of, ok := strings.Cut(name, "/"); ok {
			return "/claim/" + url.PathEscape(namespace) + "/" + url.PathEscape(of)
		}
	case "pod":
		return "/why?pod=" + url.QueryEscape(name)
	}
	return ""
}

// PagesURL parses the value of a flag that is the URL of the pages of a cluster. An empty value returns nil.
func PagesURL(flag, text string) (*url.URL, error) {
	if text == "" {
		return nil, nil
	}
	at, err := url.Parse(strings.TrimSuffix(text, "/"))
	if err != nil || at.Scheme != "https" || at.Host == "" || at.Path != "" || at.RawQuery != "" || at.User != nil {
		return nil, app.Usagef("--%s %q is not an address of pages", flag, text).
			WithHint("write it as https://pools.example.com")
	}
	return at, nil
}

// PageLink is the flag --link of a command that describes an object.
type PageLink struct {
	text string
	at   *url.URL
}

// AddTo adds the flag.
func (p *PageLink) AddTo(cmd *cobra.Command) {
	cmd.Flags().StringVar(&p.text, "link", "",
		"also print the address of its page, if the pages of the cluster are at this `URL`")
	app.Complete(cmd, "link")
}

// Validate reads the flag. It fails for -o json and similar formats, which print only objects.
func (p *PageLink) Validate(object bool) (err error) {
	if p.text != "" && object {
		return app.Usagef("--link cannot be used with -o, which prints only the object")
	}
	p.at, err = PagesURL("link", p.text)
	return err
}

// With returns the facts of an object with the address of its page, if that was asked for.
func (p *PageLink) With(f Facts, kind, name string) Facts {
	if p.at != nil {
		f.add("Page", "%s%s", p.at, PagePath(kind, name))
	}
	return f
}
