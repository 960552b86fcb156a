package cli

import (
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// terminal is what a stream can show. Only colour and bars depend on it, never a table's columns.
type terminal struct {
	tty, color, utf8 bool
	// roomy is a terminal where tables have room for bars.
	roomy bool
}

// roomyWidth is the number of columns that a table of pools needs with bars.
const roomyWidth = 100

func terminalOf(stream any, getenv func(string) string) terminal {
	t := terminal{tty: isTerminal(stream), utf8: isUTF8(getenv)}
	if t.tty {
		width, _, err := term.GetSize(int(stream.(*os.File).Fd()))
		t.roomy = err == nil && width >= roomyWidth
	}
	t.color = t.tty && getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"
	return t
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

// used is how much is taken, with a bar where there is one.
func (t terminal) used(part, total int64) string {
	if bar := t.bar(part, total); bar != "" {
		return bar + " " + share(part, total)
	}
	return share(part, total)
}

// trimmer takes the blanks from the end of every line that passes.
type trimmer struct {
	w       io.Writer
	pending []byte
}

func (t *trimmer) Write(p []byte) (int, error) {
	out := make([]byte, 0, len(t.pending)+len(p))
	for _, b := range p {
		switch b {
		case ' ':
			t.pending = append(t.pending, b)
			continue
		case '\n':
		default:
			out = append(out, t.pending...)
		}
		t.pending = t.pending[:0]
		out = append(out, b)
	}
	_, err := t.w.Write(out)
	return len(p), err
}
