package humanize

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Visible returns a text in which all characters are visible. Unprintable ones, such as control characters, characters
// that change the writing direction and characters without width, are escaped as in JSON, for example \u202e. So text
// of others cannot move a cursor, forge lines, or look like another text.
func Visible(text string) string { return visible(text, nil) }

// VisibleLines does the same as Visible, but keeps line ends and tabs.
func VisibleLines(text string) string {
	return visible(text, func(c rune) bool { return c == '\n' || c == '\t' })
}

func visible(text string, leave func(rune) bool) string {
	clean := func(c rune) bool { return unicode.IsPrint(c) || leave != nil && leave(c) }
	if utf8.ValidString(text) && !strings.ContainsFunc(text, func(c rune) bool { return !clean(c) }) {
		return text
	}
	var b strings.Builder
	for _, c := range text { // an octet that is no UTF-8 comes as the replacement character
		switch {
		case clean(c):
			b.WriteRune(c)
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\t':
			b.WriteString(`\t`)
		case c > 0xffff:
			high, low := utf16.EncodeRune(c)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, c)
		}
	}
	return b.String()
}
