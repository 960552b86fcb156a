package printer

import (
	"strings"

	"github.com/olekukonko/tablewriter/pkg/twwidth"
)

// leastCell is the minimum width to which Within shortens a cell.
const leastCell = 12

// Within returns a table that shortens the widest cells in the middle until a line fits into width. Beginning and end
// stay, because they distinguish names of pods. A line may still be too long.
func (t Table[T]) Within(width int, rows []T) Table[T] {
	widths := make([]int, len(t.Columns))
	total := -len(columnGap)
	for i, c := range t.Columns {
		if t.Headers {
			widths[i] = twwidth.Width(c.Name)
		}
		for _, row := range rows {
			widths[i] = max(widths[i], twwidth.Width(c.visible(row)))
		}
		total += widths[i] + len(columnGap)
	}
	for ; total > width; total-- {
		widest := 0
		for i := range widths {
			if widths[i] > widths[widest] {
				widest = i
			}
		}
		if len(widths) == 0 || widths[widest] <= leastCell {
			break
		}
		widths[widest]--
	}
	out := t
	out.Columns = make([]Column[T], len(t.Columns))
	for i, c := range t.Columns {
		out.Columns[i] = c
		out.Columns[i].Cell = func(row T) string { return shortened(c.visible(row), widths[i]) }
	}
	return out
}

// shortened removes the middle of a text that is wider than a cell. It never cuts colours, because coloured cells are
// short.
func shortened(text string, width int) string {
	if twwidth.Width(text) <= width || strings.Contains(text, "\x1b") {
		return text
	}
	letters := []rune(text)
	keep := max(width-1, 2)
	if len(letters) <= keep {
		return text
	}
	return string(letters[:(keep+1)/2]) + "…" + string(letters[len(letters)-keep/2:])
}
