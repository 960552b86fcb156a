package terminal

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/term"
)

// Terminal has the capabilities of a stream. Only colour and bars depend on it, never the columns of a table.
type Terminal struct {
	Tty, Color, Utf8 bool
	// roomy: tables have room for bars.
	roomy bool
	fd    int
}

// roomyWidth is the width in columns of a table of pools with bars.
const roomyWidth = 100

// Of returns the capabilities of a stream. getenv reads the environment.
func Of(stream any, getenv func(string) string) Terminal {
	t := Terminal{Tty: Is(stream), Utf8: isUTF8(getenv)}
	if t.Tty {
		t.fd = int(stream.(*os.File).Fd())
		width, _ := t.Size()
		t.roomy = width >= roomyWidth
	}
	t.Color = t.Tty && getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"
	return t
}

// Size returns the present width and height of the terminal; 80 by 24 if they are unknown.
func (t Terminal) Size() (width, height int) {
	width, height, err := term.GetSize(t.fd)
	if err != nil || width <= 0 || height <= 0 {
		return 80, 24
	}
	return width, height
}

// Is reports whether a stream is a terminal.
func Is(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// isUTF8 evaluates the locale as programs in C do.
func isUTF8(getenv func(string) string) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := getenv(name); v != "" {
			v = strings.ToLower(v)
			return strings.Contains(v, "utf-8") || strings.Contains(v, "utf8")
		}
	}
	return false
}

// Color is a colour of the terminal's palette.
type Color string

// Colors of texts.
const (
	Red    Color = "31"
	Green  Color = "32"
	Yellow Color = "33"
	Cyan   Color = "36"
)

// Paint colours a text if the terminal has colours.
func (t Terminal) Paint(c Color, text string) string {
	if !t.Color || text == "" {
		return text
	}
	return c.begin() + text + reset
}

// barWidth is the number of cells of a bar.
const barWidth = 10

// bar draws part of total; empty if the stream cannot show bars. The bar is full only if all is used, and empty only if
// nothing is.
func (t Terminal) bar(part, total int64) string {
	if !t.Tty || total <= 0 {
		return ""
	}
	n := int(float64(part) / float64(total) * barWidth)
	switch {
	case part > 0 && n == 0:
		n = 1
	case part < total && n >= barWidth:
		n = barWidth - 1
	}
	full, empty, c := "#", "-", Green
	if t.Utf8 {
		full, empty = "█", "░"
	}
	switch {
	case n >= barWidth:
		c = Red
	case n >= barWidth*8/10:
		c = Yellow
	}
	return t.Paint(c, strings.Repeat(full, n)) + strings.Repeat(empty, barWidth-n)
}

// Share formats part of total in percent.
func Share(part, total int64) string {
	if total <= 0 {
		return ""
	}
	text := fmt.Sprintf("%d%%", int64(float64(part)/float64(total)*100))
	switch {
	case part > 0 && text == "0%":
		return "<1%"
	case part < total && text == "100%":
		return "99%"
	}
	return text
}

// UsedCell formats the used part for a cell. It draws a bar only if tables have room for it.
func (t Terminal) UsedCell(part, total int64) string {
	if t.roomy {
		return t.Used(part, total)
	}
	return Share(part, total)
}

// Used formats the used part, with a bar if the stream can show it.
func (t Terminal) Used(part, total int64) string {
	if bar := t.bar(part, total); bar != "" {
		return bar + " " + Share(part, total)
	}
	return Share(part, total)
}
