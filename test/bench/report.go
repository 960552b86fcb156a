package main

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

// report gathers the tables.
type report struct {
	floors, cpu, sizes, costs, numbers []string
}

func ratio(a, b float64) string { return fmt.Sprintf("%.2f", a/b) }

func ms(d time.Duration) string { return fmt.Sprintf("%.1f", float64(d)/float64(time.Millisecond)) }

func (r *report) floor(what string, callers int, c compared) {
	row := fmt.Sprintf("| %s | %d | %.0f | %.0f | %.0f | %s | %s | %s / %s / %s | %s |", what, callers,
		c.bare.perSecond, c.handler.perSecond, c.service.perSecond,
		ratio(c.service.perSecond, c.handler.perSecond), ratio(c.service.perSecond, c.bare.perSecond),
		ms(c.bare.p99), ms(c.handler.p99), ms(c.service.p99), ratio(float64(c.service.p99), float64(c.handler.p99)))
	fmt.Println(row)
	r.floors = append(r.floors, row)
	spent := func(of func(result) time.Duration) string {
		return ms(of(c.bare)) + " / " + ms(of(c.handler)) + " / " + ms(of(c.service))
	}
	row = fmt.Sprintf("| %s | %d | %s | %s | %s |", what, callers,
		spent(func(r result) time.Duration { return r.cpu["kube-apiserver"] }), spent(func(r result) time.Duration { return r.cpu["etcd"] }),
		spent(func(r result) (all time.Duration) {
			for name, t := range r.cpu {
				if name != "kube-apiserver" && name != "etcd" {
					all += t
				}
			}
			return all
		}))
	fmt.Println(row)
	r.cpu = append(r.cpu, row)
}

func (r *report) pool(size int, full bool, callers int, c compared) {
	state := "empty"
	if full {
		state = "90 % full"
	}
	row := fmt.Sprintf("| %d | %s | %d | %.0f | %.0f | %s | %s | %s |", size, state, callers,
		c.handler.perSecond, c.service.perSecond, ratio(c.service.perSecond, c.handler.perSecond),
		ratio(c.service.perSecond, c.bare.perSecond), ratio(float64(c.service.p99), float64(c.handler.p99)))
	fmt.Println(row)
	r.sizes = append(r.sizes, row)
}

func (r *report) requests(what string, counts map[string]float64, ops float64) {
	var parts []string
	for k, n := range counts {
		if n != 0 {
			parts = append(parts, fmt.Sprintf("%.3f %s", n/ops, k))
		}
	}
	slices.Sort(parts)
	row := fmt.Sprintf("| %s | %s |", what, strings.Join(parts, ", "))
	fmt.Println(row)
	r.costs = append(r.costs, row)
}

func (r *report) duration(what string, all []time.Duration) {
	slices.Sort(all)
	r.number(what, all[len(all)/2].Seconds(), "s")
}

func (r *report) number(what string, value float64, unit string) {
	row := fmt.Sprintf("| %s | %.3g %s |", what, value, unit)
	if value >= 100 {
		row = fmt.Sprintf("| %s | %.0f %s |", what, value, unit)
	}
	fmt.Println(row)
	r.numbers = append(r.numbers, row)
}

const (
	begin = "<!-- tables: written by make bench -->"
	end   = "<!-- end of tables -->"
)

// write puts the tables between the marks of a file.
func (r *report) write(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, rest, ok := strings.Cut(string(text), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		return fmt.Errorf("%s has no place for the tables: %q and %q", path, begin, end)
	}
	return os.WriteFile(path, []byte(before+begin+"\n\n"+r.tables()+"\n"+end+after), 0o644)
}

func (r *report) tables() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%d cores, %s.\n\n", runtime.NumCPU(), runtime.Version())
	table := func(title, head string, rows []string) {
		if len(rows) == 0 {
			return
		}
		columns := strings.Count(head, "|") - 1
		fmt.Fprintf(&s, "### %s\n\n%s\n|%s\n%s\n\n", title, head, strings.Repeat(" --- |", columns), strings.Join(rows, "\n"))
	}
	table("Throughput and latency beside the floors",
		"| operation | callers | bare client /s | empty handler /s | bcsnet /s | of handler | of bare | p99 ms bare / handler / bcsnet | p99 of handler |", r.floors)
	table("Processor time per cycle, ms: bare / handler / bcsnet",
		"| operation | callers | kube-apiserver | etcd | client, with handler or controller |", r.cpu)
	table("Size of the pool, and how full it is",
		"| addresses | state | callers | empty handler /s | bcsnet /s | of handler | of bare | p99 of handler |", r.sizes)
	table("Requests to the API server per operation", "| operation | requests |", r.costs)
	table("Start, memory, new pools", "| what | median |", r.numbers)
	return strings.TrimRight(s.String(), "\n") + "\n"
}
