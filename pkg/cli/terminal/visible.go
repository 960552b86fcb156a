package terminal

import (
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
)

const (
	escape = "\x1b"
	reset  = "\x1b[0m"
	// warning is client-go's colour for warnings of the API server.
	warning = "\x1b[33;1m"
)

// begin returns the sequence that begins a colour.
func (c Color) begin() string { return escape + "[" + string(c) + "m" }

// painted returns the sequences of all colours.
func painted() []string {
	return []string{Red.begin(), Green.begin(), Yellow.begin(), Cyan.begin(), reset, warning}
}

// Visible returns a text as one line with visible control characters; see humanize.Visible. It keeps colours if the
// text also ends them.
func Visible(text string) string {
	return visible(text, strings.Contains(text, reset), humanize.Visible)
}

// visible applies part to the text between colour sequences; without colors, also to the sequences.
func visible(text string, colors bool, part func(string) string) string {
	if !colors || !strings.Contains(text, escape) {
		return part(text)
	}
	var b strings.Builder
	for {
		at := strings.Index(text, escape)
		if at < 0 {
			b.WriteString(part(text))
			return b.String()
		}
		end := at + len(escape)
		if i := slices.IndexFunc(painted(), func(s string) bool { return strings.HasPrefix(text[at:], s) }); i >= 0 {
			end = at + len(painted()[i])
			b.WriteString(part(text[:at]))
			b.WriteString(text[at:end])
		} else {
			b.WriteString(part(text[:end]))
		}
		text = text[end:]
	}
}

// Writer writes text for people. It makes control characters visible, except line ends, tabs and, if the terminal has
// them, colours.
type Writer struct {
	w      io.Writer
	colors bool
	// rest is an incomplete character or sequence at the end of the previous text.
	rest string
}

// NewWriter returns a Writer on a stream.
func NewWriter(stream io.Writer, t Terminal) *Writer { return &Writer{w: stream, colors: t.Color} }

// Raw returns the stream below a Writer, for drawing and for output to programs. It returns any other stream unchanged.
func Raw(stream io.Writer) io.Writer {
	if w, ok := stream.(*Writer); ok {
		return w.w
	}
	return stream
}

// Write writes the complete part of the text so far.
func (w *Writer) Write(p []byte) (int, error) {
	text := w.rest + string(p)
	whole := len(text) - unfinished(text, w.colors)
	w.rest = text[whole:]
	if _, err := io.WriteString(w.w, visible(text[:whole], w.colors, humanize.VisibleLines)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// unfinished returns the length of an incomplete character or sequence at the end of a text, in bytes.
func unfinished(text string, colors bool) int {
	if at := strings.LastIndex(text, escape); at >= 0 && colors {
		begins := func(s string) bool { return len(s) > len(text)-at && strings.HasPrefix(s, text[at:]) }
		if slices.ContainsFunc(painted(), begins) {
			return len(text) - at
		}
	}
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if utf8.RuneStart(text[len(text)-n]) {
			if utf8.FullRuneInString(text[len(text)-n:]) {
				return 0
			}
			return n
		}
	}
	return 0
}
