package usage

import (
	"bytes"
	"fmt"
	"math"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/cli/terminal"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
)

// States of a cell.
const (
	cellNone     = "none"
	cellFree     = "free"
	cellCooling  = "cooling"
	cellReserved = "reserved"
	cellActive   = "active"
	cellProblem  = "problem"
)

// state names what is gravest in a cell.
func (c heatCell) state() string {
	switch {
	case c.problems > 0:
		return cellProblem
	case c.active > 0:
		return cellActive
	case c.reserved > 0:
		return cellReserved
	case c.cooling > 0:
		return cellCooling
	case c.usable > 0:
		return cellFree
	default:
		return cellNone
	}
}

// shades is how many shades a block may have beside free.
const shades = 4

// shade returns the share of a block that is taken: 0 for none of it, shades for the last quarter. Where more is
// taken than the pool hands out, addresses drain.
func (c heatCell) shade() int {
	if c.taken() == 0 {
		return 0
	}
	share := float64(c.taken()) / math.Max(float64(c.usable), float64(c.taken()))
	return int(math.Ceil(share * shades))
}

// marks are the characters of a heat map.
type marks struct {
	none, free, cooling, reserved, active, problem string
	shades                                         [shades]string
}

func marksOf(t terminal.Terminal) marks {
	if t.Utf8 {
		return marks{" ", ".", "~", "▒", "█", "✗", [shades]string{"░", "▒", "▓", "█"}}
	}
	return marks{" ", ".", "~", "r", "#", "x", [shades]string{"-", "+", "*", "#"}}
}

// mark returns the character of a cell, in its colour.
func (m heatMap) mark(t terminal.Terminal, c heatCell) string {
	k := marksOf(t)
	state := c.state()
	if !m.single && c.problems == 0 && c.taken() > 0 {
		return t.Paint(terminal.Green, k.shades[c.shade()-1])
	}
	switch state {
	case cellProblem:
		return t.Paint(terminal.Red, k.problem)
	case cellActive:
		return t.Paint(terminal.Green, k.active)
	case cellReserved:
		return t.Paint(terminal.Yellow, k.reserved)
	case cellCooling:
		return t.Paint(terminal.Cyan, k.cooling)
	case cellFree:
		return k.free
	default:
		return k.none
	}
}

// draw prints the map, its legend and its sum.
func (m heatMap) draw(b *bytes.Buffer, t terminal.Terminal) {
	fmt.Fprintf(b, "Pool %s: %s\n\n", m.pool, m.sum())
	width := 0
	for _, r := range m.rows {
		width = max(width, len(r.from.String()))
	}
	for _, r := range m.rows {
		var cells strings.Builder
		for _, c := range r.cells {
			cells.WriteString(m.mark(t, c))
		}
		fmt.Fprintf(b, "%-*s %s\n", width, r.from, strings.TrimRight(cells.String(), " "))
	}
	if len(m.rows) > 0 {
		b.WriteString("\n")
	}
	b.WriteString(m.legend(t) + "\n")
	if len(m.problems) > 0 {
		b.WriteString("\nProblems, draining, being deleted, or on a host that is not in the pool:\n  " +
			humanize.List(resource.HeldBy(m.problems)) + "\n")
	}
}

func (m heatMap) sum() string {
	parts := []string{fmt.Sprintf("%d active", m.active), fmt.Sprintf("%d reserved", m.reserved)}
	if m.cooling > 0 {
		parts = append(parts, fmt.Sprintf("%d cooling", m.cooling))
	}
	if n := len(m.problems); n > 0 {
		parts = append(parts, humanize.Plural(n, "problem"))
	}
	return strings.Join(append(parts, app.Count(m.free())+" free"), ", ")
}

func (m heatMap) legend(t terminal.Terminal) string {
	k := marksOf(t)
	left := "other lines hold no address of the pool"
	if m.sparse {
		left = "other lines hold nothing"
	}
	text := fmt.Sprintf("%s free  %s reserved  %s active", k.free, t.Paint(terminal.Yellow, k.reserved),
		t.Paint(terminal.Green, k.active))
	if m.cooling > 0 && m.single {
		text += "  " + t.Paint(terminal.Cyan, k.cooling) + " cooling"
	}
	problem, unit := " problem", fmt.Sprintf("%d addresses a line", m.perRow)
	if !m.single {
		text = fmt.Sprintf("%s free  %s up to 25%%  %s 50%%  %s 75%%  %s 100%% taken", k.free, k.shades[0], k.shades[1],
			k.shades[2], k.shades[3])
		problem, unit = " with a problem", fmt.Sprintf("one cell a /%d", m.bits)
	}
	if len(m.problems) > 0 {
		text += "  " + t.Paint(terminal.Red, k.problem) + problem
	}
	return text + "\n" + unit + "; " + left
}

// object returns the map for -o json and the like.
func (m heatMap) object() unstructured.Unstructured {
	rows := []any{}
	for _, r := range m.rows {
		cells := []any{}
		for _, c := range r.cells {
			cells = append(cells, m.cellObject(c))
		}
		rows = append(rows, map[string]any{"from": r.from.String(), "cells": cells})
	}
	return unstructured.Unstructured{Object: map[string]any{
		"apiVersion": app.ProgramName + "/v1", "kind": "PoolUsage", "pool": m.pool, "block": int64(m.bits), "rows": rows,
		"active": int64(m.active), "reserved": int64(m.reserved), "cooling": int64(m.cooling),
		"problems": int64(len(m.problems)),
		"usable":   int64(min(m.usable, math.MaxInt64)),
	}}
}

func (m heatMap) cellObject(c heatCell) map[string]any {
	if m.single {
		o := map[string]any{"address": c.block.Addr().String(), "state": c.state()}
		if c.who != "" {
			o["holder"] = c.who
		}
		return o
	}
	return map[string]any{
		"block": c.block.String(), "usable": int64(min(c.usable, math.MaxInt64)),
		"active": int64(c.active), "reserved": int64(c.reserved), "cooling": int64(c.cooling), "problems": int64(c.problems),
	}
}
