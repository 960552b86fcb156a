package usage

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/cli/terminal"
	"github.com/bcsnet/bcsnet/pkg/cli/view"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
)

// marks are the characters of a heat map.
type marks struct {
	none, free, cooling, reserved, active, problem string
	shades                                         [view.Shades]string
}

func marksOf(t terminal.Terminal) marks {
	if t.Utf8 {
		return marks{" ", ".", "~", "▒", "█", "✗", [view.Shades]string{"░", "▒", "▓", "█"}}
	}
	return marks{" ", ".", "~", "r", "#", "x", [view.Shades]string{"-", "+", "*", "#"}}
}

// mark returns the coloured character of a cell.
func mark(m view.Map, t terminal.Terminal, c view.Cell) string {
	k := marksOf(t)
	state := c.State()
	if !m.Single && c.Problems == 0 && c.Taken() > 0 {
		return t.Paint(terminal.Green, k.shades[c.Shade()-1])
	}
	switch state {
	case view.CellProblem:
		return t.Paint(terminal.Red, k.problem)
	case view.CellActive:
		return t.Paint(terminal.Green, k.active)
	case view.CellReserved:
		return t.Paint(terminal.Yellow, k.reserved)
	case view.CellCooling:
		return t.Paint(terminal.Cyan, k.cooling)
	case view.CellFree:
		return k.free
	default:
		return k.none
	}
}

// draw prints the map, its legend and its totals.
func draw(m view.Map, b *bytes.Buffer, t terminal.Terminal) {
	fmt.Fprintf(b, "Pool %s: %s\n\n", m.Pool, sum(m))
	width := 0
	for _, r := range m.Rows {
		width = max(width, len(r.From.String()))
	}
	for _, r := range m.Rows {
		var cells strings.Builder
		for _, c := range r.Cells {
			cells.WriteString(mark(m, t, c))
		}
		fmt.Fprintf(b, "%-*s %s\n", width, r.From, strings.TrimRight(cells.String(), " "))
	}
	if len(m.Rows) > 0 {
		b.WriteString("\n")
	}
	b.WriteString(legend(m, t) + "\n")
	if len(m.Problems) > 0 {
		b.WriteString("\nProblems, draining, being deleted, or on a host that is not in the pool:\n  " +
			humanize.List(resource.HeldBy(m.Problems)) + "\n")
	}
}

func sum(m view.Map) string {
	parts := []string{fmt.Sprintf("%d active", m.Active), fmt.Sprintf("%d reserved", m.Reserved)}
	if m.Cooling > 0 {
		parts = append(parts, fmt.Sprintf("%d cooling", m.Cooling))
	}
	if n := len(m.Problems); n > 0 {
		parts = append(parts, humanize.Plural(n, "problem"))
	}
	return strings.Join(append(parts, app.Count(m.Free())+" free"), ", ")
}

func legend(m view.Map, t terminal.Terminal) string {
	k := marksOf(t)
	left := "other lines hold no address of the pool"
	if m.Sparse {
		left = "other lines hold nothing"
	}
	text := fmt.Sprintf("%s free  %s reserved  %s active", k.free, t.Paint(terminal.Yellow, k.reserved),
		t.Paint(terminal.Green, k.active))
	if m.Cooling > 0 && m.Single {
		text += "  " + t.Paint(terminal.Cyan, k.cooling) + " cooling"
	}
	problem, unit := " problem", fmt.Sprintf("%d addresses a line", m.PerRow)
	if !m.Single {
		text = fmt.Sprintf("%s free  %s up to 25%%  %s 50%%  %s 75%%  %s 100%% taken", k.free, k.shades[0], k.shades[1],
			k.shades[2], k.shades[3])
		problem, unit = " with a problem", fmt.Sprintf("one cell a /%d", m.Bits)
	}
	if len(m.Problems) > 0 {
		text += "  " + t.Paint(terminal.Red, k.problem) + problem
	}
	return text + "\n" + unit + "; " + left
}

// mapKind is the kind of a map for -o json and similar formats.
const mapKind = "PoolUsage"

func mapFields(m view.Map) map[string]any {
	rows := []any{}
	for _, r := range m.Rows {
		cells := app.Map(r.Cells, func(c view.Cell) any { return cellObject(m, c) })
		rows = append(rows, map[string]any{"from": r.From.String(), "cells": cells})
	}
	return map[string]any{
		"pool": m.Pool, "block": int64(m.Bits), "rows": rows, "active": int64(m.Active),
		"reserved": int64(m.Reserved), "cooling": int64(m.Cooling), "problems": int64(len(m.Problems)),
		"usable": app.Saturated(m.Usable),
	}
}

func cellObject(m view.Map, c view.Cell) map[string]any {
	if m.Single {
		o := map[string]any{"address": c.Block.Addr().String(), "state": string(c.State())}
		if c.Who != "" {
			o["holder"] = c.Who
		}
		return o
	}
	return map[string]any{
		"block": c.Block.String(), "usable": app.Saturated(c.Usable),
		"active": int64(c.Active), "reserved": int64(c.Reserved), "cooling": int64(c.Cooling),
		"problems": int64(c.Problems),
	}
}
