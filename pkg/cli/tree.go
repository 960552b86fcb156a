package cli

import (
	"bytes"
	"strings"
)

// branch is a node of a tree: what it is, and what is to say of it.
type branch struct {
	name, about string
	under       []branch
}

// strokes are the lines of a tree.
type strokes struct{ fork, last, pass, none string }

func (t terminal) strokes() strokes {
	if t.utf8 {
		return strokes{"├── ", "└── ", "│   ", "    "}
	}
	return strokes{"|-- ", "`-- ", "|   ", "    "}
}

// drawTree draws trees down to a depth; 0 is no bound. The names of one level under one branch stand in a
// column of their own.
func drawTree(b *bytes.Buffer, trees []branch, s strokes, depth int) {
	width := widest(trees)
	for _, t := range trees {
		b.WriteString(label(t, width) + "\n")
		drawUnder(b, t.under, s, "", depth-1)
	}
}

func drawUnder(b *bytes.Buffer, branches []branch, s strokes, before string, depth int) {
	if depth == 0 {
		return
	}
	width := widest(branches)
	for i, one := range branches {
		joint, next := s.fork, s.pass
		if i == len(branches)-1 {
			joint, next = s.last, s.none
		}
		b.WriteString(before + joint + label(one, width) + "\n")
		drawUnder(b, one.under, s, before+next, depth-1)
	}
}

func widest(all []branch) (width int) {
	for _, one := range all {
		if one.about != "" {
			width = max(width, len(one.name))
		}
	}
	return width
}

func label(one branch, width int) string {
	if one.about == "" {
		return one.name
	}
	return one.name + strings.Repeat(" ", max(0, width-len(one.name))) + columnGap + one.about
}
