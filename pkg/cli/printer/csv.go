package printer

import (
	"encoding/csv"
	"io"
	"strconv"
	"strings"
)

// writeCSV prints lines of cells as comma-separated values: as RFC 4180 has them, but for the ends of lines, which are
// those of Unix.
func writeCSV(w io.Writer, lines [][]string) error {
	out := csv.NewWriter(w)
	for _, cells := range lines {
		for i, cell := range cells {
			cells[i] = value(cell)
		}
		if err := out.Write(cells); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// value returns a cell of a table as programs read it: nothing in place of a dash. A spreadsheet takes a cell that
// begins with =, +, - or @ for a formula, and runs it. An apostrophe in front, which spreadsheets do not show, makes it
// a text. Owners and reasons are texts that anybody may write.
func value(cell string) string {
	if cell == emptyCell {
		return ""
	}
	if strings.IndexAny(cell, "=+-@\t\r＝＋－＠") != 0 {
		return cell
	}
	if _, err := strconv.ParseFloat(cell, 64); err == nil {
		return cell
	}
	return "'" + cell
}
