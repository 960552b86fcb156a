package printer

import (
	"strings"

	"github.com/olekukonko/tablewriter/pkg/twwidth"
)

// leastCell is how narrow within makes a cell at most.
const leastCell = 12

// Within returns a table that shortens the widest cells of rows in their middle until a line fits into width. Names
// keep their beginning and their end, which distinguish pods. A line may be too long even then.
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

// shortened takes the middle out of a text that is wider than a cell. Colours stay whole: coloured cells are short.
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
