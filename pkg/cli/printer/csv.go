package printer

import (
	"encoding/csv"
	"io"
	"strconv"
	"strings"
)

// WriteCSV prints lines of cells as comma-separated values. It follows RFC 4180, but ends lines with LF.
func WriteCSV(w io.Writer, lines [][]string) error {
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

// value returns a cell for programs: an empty text instead of a dash. It puts an apostrophe before a text that begins
// with =, +, - or @, because a spreadsheet would run that as a formula, and anybody may write owners and reasons.
// Spreadsheets do not show the apostrophe.
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
