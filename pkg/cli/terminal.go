package cli

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/term"
)

// terminal is what a stream can show. Only colour and bars depend on it, never a table's columns.
type terminal struct {
	tty, color, utf8 bool
	// roomy is a terminal where tables have room for bars.
	roomy bool
	fd    int
}

// roomyWidth is the number of columns that a table of pools needs with bars.
const roomyWidth = 100

func terminalOf(stream any, getenv func(string) string) terminal {
	t := terminal{tty: isTerminal(stream), utf8: isUTF8(getenv)}
	if t.tty {
		t.fd = int(stream.(*os.File).Fd())
		width, _ := t.size()
		t.roomy = width >= roomyWidth
	}
	t.color = t.tty && getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"
	return t
}

// size is what the terminal can show now.
func (t terminal) size() (width, height int) {
	width, height, err := term.GetSize(t.fd)
	if err != nil || width <= 0 || height <= 0 {
		return 80, 24
	}
	return width, height
}

func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// isUTF8 asks the locale, as programs in C do.
func isUTF8(getenv func(string) string) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := getenv(name); v != "" {
			v = strings.ToLower(v)
			return strings.Contains(v, "utf-8") || strings.Contains(v, "utf8")
		}
	}
	return false
}

// color is a colour of the terminal's own palette.
type color string

const (
	red    color = "31"
	green  color = "32"
	yellow color = "33"
	cyan   color = "36"
)

// paint colours a text where the terminal can.
func (t terminal) paint(c color, text string) string {
	if !t.color || text == "" {
		return text
	}
	return "\x1b[" + string(c) + "m" + text + "\x1b[0m"
}

// barWidth is how many cells a bar has.
const barWidth = 10

// bar draws part of total; nothing where there is no terminal to draw on. It is full only when all is
// used, and empty only when nothing is.
func (t terminal) bar(part, total int64) string {
	if !t.tty || total <= 0 {
		return ""
	}
	n := int(float64(part) / float64(total) * barWidth)
	switch {
	case part > 0 && n == 0:
		n = 1
	case part < total && n >= barWidth:
		n = barWidth - 1
	}
	full, empty, c := "#", "-", green
	if t.utf8 {
		full, empty = "█", "░"
	}
	switch {
	case n >= barWidth:
		c = red
	case n >= barWidth*8/10:
		c = yellow
	}
	return t.paint(c, strings.Repeat(full, n)) + strings.Repeat(empty, barWidth-n)
}

// share is how much is taken, in percent.
func share(part, total int64) string {
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

// usedCell is for tables, which have no room for bars everywhere.
func (t terminal) usedCell(part, total int64) string {
	if t.roomy {
		return t.used(part, total)
	}
	return share(part, total)
}

// used is how much is taken, with a bar where there is one.
func (t terminal) used(part, total int64) string {
	if bar := t.bar(part, total); bar != "" {
		return bar + " " + share(part, total)
	}
	return share(part, total)
}
