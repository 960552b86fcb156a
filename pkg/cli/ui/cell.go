package ui

import (
	"fmt"
	"html/template"
	"math"
	"net/url"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/view"
)

// cell writes a cell of a map. A page has up to 4096 of them, for which a template would take half a second.
func cell(pool string, m view.Map, c view.Cell) template.HTML {
	state := c.State()
	if state == view.CellNone {
		return "<i></i>"
	}
	class, title, to := string(state[0]), c.Block.Addr().String(), "/ip/"+c.Block.Addr().String()
	switch {
	case m.Single && c.Who != "":
		title += " " + c.Who
	case m.Single && c.Kept != "":
		title += " " + c.Kept
	case m.Single:
	default:
		title = fmt.Sprintf("%s: %d of %s taken", c.Block, c.Taken(), app.Count(int64(min(c.Usable, math.MaxInt64))))
		to = "/pool/" + url.PathEscape(pool) + "?at=" + url.QueryEscape(c.Block.String()) + "#map"
		if n := c.Shade(); n > 0 {
			class = fmt.Sprintf("s%d", n)
		}
		if c.Problems > 0 {
			class += " x"
		}
	}
	text := `<a class="` + class + `" tabindex="-1" href="` + template.HTMLEscapeString(to) + `" title="` +
		template.HTMLEscapeString(title) + `"></a>`
	return template.HTML(text) //nolint:gosec // all of it is escaped
}
