package ui

import (
	"fmt"
	"html/template"
	"strings"
	"time"

	"go4.org/netipx"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/cli/terminal"
	"github.com/bcsnet/bcsnet/pkg/cli/view"
	"github.com/bcsnet/bcsnet/pkg/doctor"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

// texts are the templates in one language.
type texts struct{ pages *template.Template }

// newTexts parses the templates. Words of the pages are translated; sentences of the program stay English, as in
// commands.
func newTexts(s *app.App, lang string) (*texts, error) {
	others := words(lang)
	translate := func(word string, args ...any) string {
		if other, ok := others[word]; ok {
			word = other
		}
		if len(args) == 0 {
			return word
		}
		return fmt.Sprintf(word, args...)
	}
	age := func(t time.Time) string { return s.Age(t) }
	pages, err := template.New("").Funcs(template.FuncMap{
		"t": translate, "age": age, "called": s.Called, "count": app.Count, "share": terminal.Share,
		"time": resource.TimeText, "cidr": resource.CidrOf, "network": resource.NetworkOf, "hosts": resource.HostCell,
		"addr": resource.AddrText, "status": resource.StatusText, "until": resource.UntilText,
		"span": ipaddr.FormatRange, "size": func(r netipx.IPRange) string { return app.Count(int64(ipaddr.Size(r))) },
		"set": spell, "class": class, "counted": resource.Counted, "visible": terminal.Visible,
		"lower": strings.ToLower, "group": view.GroupText, "owner": resource.OwnerOf,
		"setsize": func(s *netipx.IPSet) int64 { return int64(ipaddr.SizeOfSet(s)) },
		"bar":     func(percent int64) int64 { return max(0, min(100, percent)) },
		"link":    view.PagePath, "severity": severityClass, "linked": linked, "cell": cell, "found": found,
		"author":    view.Author,
		"rest":      func(f view.Facts) view.Facts { return f[1:] },
		"firstruns": func(all []netipx.IPRange) []netipx.IPRange { return all[:min(len(all), mostRuns)] },
	}).ParseFS(templates, "pages/*.html")
	return &texts{pages}, err
}

// mostRuns bounds the ranges in a list of addresses.
const mostRuns = 24

// spell formats a set of addresses, or the first ranges of many.
func spell(s *netipx.IPSet) string {
	ranges := s.Ranges()
	if len(ranges) <= mostRuns {
		return resource.Spell(s)
	}
	var first []string
	for _, r := range ranges[:mostRuns] {
		first = append(first, ipaddr.FormatRange(r))
	}
	return strings.Join(first, ",") + ",…"
}

// class returns the CSS class for a colour.
func class(c terminal.Color) string {
	return map[terminal.Color]string{
		terminal.Red: "bad", terminal.Yellow: "warn", terminal.Green: "good", terminal.Cyan: "info",
	}[c]
}

// severityClass returns the CSS class for a severity.
func severityClass(s doctor.Severity) string {
	return map[doctor.Severity]string{doctor.Error: "bad", doctor.Warning: "warn", doctor.Info: "info"}[s]
}

// linked splits a fact into the name at its beginning, the path of the named object's page, and the rest.
func linked(f view.Fact) map[string]string {
	name, rest := f.Text, ""
	if i := strings.IndexAny(f.Text, ", ;"); i > 0 {
		name, rest = f.Text[:i], f.Text[i:]
	}
	kind := map[string]string{
		"Pool": "pool", "Parent": "pool", "Host": "host", "Node": "node", "Claim": "claim", "Network": "network",
		"Held by": "pod",
	}[f.Label]
	_, err := ipaddr.ParseAddr(name)
	if f.Label == "Host" && err != nil || kind == "pod" && !strings.Contains(name, "/") {
		kind = ""
	}
	to := view.PagePath(kind, name)
	if to == "" {
		name, rest = "", f.Text
	}
	return map[string]string{"To": to, "Name": name, "Rest": rest}
}
