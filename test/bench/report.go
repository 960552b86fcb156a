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
	floors, cpu, sizes, costs, numbers, builds []string
	// https is of HTTPS beside plain HTTP.
	https []string
	// firsts and firstCPU are of first allocations, large of the largest pool.
	firsts, firstCPU, large []string
	// duels and their costs are of sticky addresses.
	duels, duelCosts []string
	// overloads are turns of more than can be stored.
	overloads []string
	// blocks are of a network in blocks.
	blocks []string
	// policies are of allocations with admission policies and without.
	policies []string
	// plugins are of bcsnet-ipam as a process, rivals of others' plugins beside it, nodes of pods on real nodes.
	plugins, rivals, nodes []string
	// lists and quicks are of the command line, scale is what the lists go over.
	lists, quicks []string
	scale         string
	// imports are of bcsnetctl import.
	imports []string
	// pages are of bcsnetctl ui, viewed are allocations while viewers follow pages, viewers is their processor time,
	// and clicks is the time of clicks in a browser.
	pages, viewed, viewers, clicks []string
}

func ratio(a, b float64) string { return fmt.Sprintf("%.2f", a/b) }

func ms(d time.Duration) string { return fmt.Sprintf("%.1f", float64(d)/float64(time.Millisecond)) }

func (r *report) floor(what string, callers int, c compared) {
	row := fmt.Sprintf("| %s | %d | %.0f | %.0f | %.0f | %.0f | %s | %s | %s | %s / %s / %s / %s | %s |", what, callers,
		c.bare.perSecond, c.handler.perSecond, c.informer.perSecond, c.service.perSecond,
		ratio(c.service.perSecond, c.informer.perSecond), ratio(c.service.perSecond, c.handler.perSecond),
		ratio(c.service.perSecond, c.bare.perSecond),
		ms(c.bare.p99), ms(c.handler.p99), ms(c.informer.p99), ms(c.service.p99),
		ratio(float64(c.service.p99), float64(c.informer.p99)))
	fmt.Println(row)
	rows, cpu := &r.floors, &r.cpu
	if what == first.String() {
		rows, cpu = &r.firsts, &r.firstCPU
	}
	*rows = append(*rows, row)
	each := func(of func(result) time.Duration) string {
		return ms(of(c.bare)) + " / " + ms(of(c.handler)) + " / " + ms(of(c.informer)) + " / " + ms(of(c.service))
	}
	row = fmt.Sprintf("| %s | %d | %s | %s | %s |", what, callers,
		each(func(r result) time.Duration { return r.cpu["kube-apiserver"] }),
		each(func(r result) time.Duration { return r.cpu["etcd"] }),
		each(func(r result) (all time.Duration) {
			for name, t := range r.cpu {
				if name != "kube-apiserver" && name != "etcd" {
					all += t
				}
			}
			return all
		}))
	fmt.Println(row)
	*cpu = append(*cpu, row)
}

// build reports what this build and another one did in turn.
func (r *report) build(what string, callers int, other, this []result) {
	r.builds = append(r.builds, inTurn(what, callers, other, this))
}

// secured reports what HTTPS with a token and plain HTTP did in turn.
func (r *report) secured(what string, callers int, plain, secure []result) {
	r.https = append(r.https, inTurn(what, callers, plain, secure))
}

// inTurn returns the row of two that took turns, and shows it.
func inTurn(what string, callers int, other, this []result) string {
	o, t := median(other), median(this)
	row := fmt.Sprintf("| %s | %d | %.0f | %.0f | %s | %s | %s / %s |", what, callers, o.perSecond, t.perSecond,
		byTurn(this, other, rate), byTurn(this, other, spent), ms(o.p99), ms(t.p99))
	fmt.Println(row)
	return row
}

func rate(r result) float64 { return r.perSecond }

// spent returns the processor time of a cycle, of all processes.
func spent(r result) (all float64) {
	for _, t := range r.cpu {
		all += t.Seconds()
	}
	return all
}

// ratios returns the ratios of a quantity of two results in turn, in order of their size.
func ratios(a, b []result, of func(result) float64) []float64 {
	all := make([]float64, len(a))
	for i := range a {
		all[i] = of(a[i]) / of(b[i])
	}
	slices.Sort(all)
	return all
}

// byTurn formats the ratio of a quantity of two results in turn: the median and the quartiles.
func byTurn(a, b []result, of func(result) float64) string {
	ratios := ratios(a, b, of)
	n := len(ratios)
	return fmt.Sprintf("%.2f (%.2f to %.2f)", ratios[n/2], ratios[n/4], ratios[n*3/4])
}

// contest reports a quantity of two that took turns, the one beside the other, and the processor time.
func (r *report) contest(what string, of func(result) float64, one, other []result) {
	o, f := median(one), median(other)
	r.block(what, fmt.Sprintf("%s, %.3g beside %.3g; processor time %s", byTurn(one, other, of), of(o), of(f),
		byTurn(one, other, spent)))
}

// beside reports times that were taken in turn, the ones beside the others.
func (r *report) beside(what string, one, other []time.Duration) {
	results := func(all []time.Duration) (rs []result) {
		for _, d := range all {
			rs = append(rs, result{p50: d})
		}
		return rs
	}
	r.block(what, fmt.Sprintf("%s, %s beside %s", byTurn(results(one), results(other), typical), seconds(half(one)),
		seconds(half(other))))
}

// longer reports how much longer starts with blocks take than those with one pool, and how much longer a plain informer
// takes to list them.
func (r *report) longer(what string, starts, lists [2][]time.Duration) {
	r.block("longer by, "+what+", and a plain informer's list of the same pools", fmt.Sprintf("%s beside %s",
		seconds(half(starts[0])-half(starts[1])), seconds(half(lists[0])-half(lists[1]))))
}

// half returns the median.
func half(all []time.Duration) time.Duration {
	all = slices.Sorted(slices.Values(all))
	return all[len(all)/2]
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.3f s", d.Seconds()) }

// block reports what was found of a network in blocks.
func (r *report) block(what, found string) {
	row := fmt.Sprintf("| %s | %s |", what, found)
	fmt.Println(row)
	r.blocks = append(r.blocks, row)
}

// excess reports a turn of the part overload.
func (r *report) excess(e excess) {
	rest := fmt.Sprintf("%.1f s", e.rest.Seconds())
	if e.left > 0 {
		rest = fmt.Sprintf("%d have none", e.left)
	}
	row := fmt.Sprintf("| %s | %s | %.1f | %.0f | %.0f | %.0f | %s | %.0f | %.0f | %s | %s | %s | %s |",
		e.build, layout(e.apart), e.times, e.saturated, e.offered, e.answered, ratio(e.answered, e.saturated),
		e.refused, e.gaveUp, ms(e.p99), rest, e.used, e.usedSaturated)
	fmt.Println(row)
	if e.failed > 0 {
		say("%d requests were answered otherwise, the first: %v", e.failed, e.why)
	}
	r.overloads = append(r.overloads, row)
}

func (r *report) pool(size int, full bool, callers int, c compared) {
	state := "empty"
	if full {
		state = "90 % full"
	}
	row := fmt.Sprintf("| %d | %s | %d | %.0f | %.0f | %s | %s |", size, state, callers,
		c.informer.perSecond, c.service.perSecond, ratio(c.service.perSecond, c.informer.perSecond),
		ratio(float64(c.service.p99), float64(c.informer.p99)))
	fmt.Println(row)
	r.sizes = append(r.sizes, row)
}

func (r *report) requests(c costs) {
	for _, row := range c.rows("") {
		fmt.Println(row)
		r.costs = append(r.costs, row)
	}
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

// list reports a command that prints much, beside kubectl's list of the same objects.
func (r *report) list(what string, c, kubectl call) {
	row := fmt.Sprintf("| %#q | %.2g s | %.2g s | %s | %d MB |", what, c.first.Seconds(), c.total.Seconds(),
		ratio(c.total.Seconds(), kubectl.total.Seconds()), c.rss>>20)
	fmt.Println(row)
	r.lists = append(r.lists, row)
}

// quick reports a command that prints little.
func (r *report) quick(what string, c call) {
	row := fmt.Sprintf("| %#q | %s | %d MB |", what, ms(c.total), c.rss>>20)
	fmt.Println(row)
	r.quicks = append(r.quicks, row)
}

// Between these marks, and only there, a file is rewritten: the tables of the service, those of sticky addresses, of
// overload, of the command line, and of the CNI plugins.
const (
	serviceMark, stickyMark, overloadMark, cliMark = "tables", "tables of sticky addresses", "tables of overload",
		"tables of the command line"
	nodeMark = "tables of CNI plugins"
)

func begin(mark string) string { return "<!-- " + mark + ": written by make bench -->" }

func end(mark string) string { return "<!-- end of " + mark + " -->" }

// title begins a table.
const title = "### "

// merged returns the old tables with the new ones in place of those of the same title, or behind them.
func merged(old, fresh string) string {
	all := sections(old)
	for _, t := range sections(fresh) {
		heading, _, _ := strings.Cut(t, "\n")
		i := slices.IndexFunc(all, func(s string) bool { return strings.HasPrefix(s, heading+"\n") })
		if i < 0 {
			all = append(all, t)
			continue
		}
		all[i] = t
	}
	return strings.Join(all, "\n")
}

// sections returns the tables of a text, each with its title and one line end. It leaves out what stands before the
// first.
func sections(text string) (all []string) {
	for i, s := range strings.Split(text, title) {
		if i > 0 {
			all = append(all, title+strings.TrimSpace(s)+"\n")
		}
	}
	return all
}

// write puts the tables of what was measured between the marks of a file. What was not measured stays.
func (r *report) write(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	for mark, tables := range map[string]string{
		serviceMark: r.service(), stickyMark: r.stickyTables(), overloadMark: r.overloadTable(),
		cliMark:  r.commandLine(),
		nodeMark: r.cniTables(),
	} {
		before, rest, ok := strings.Cut(string(text), begin(mark))
		inside, after, ok2 := strings.Cut(rest, end(mark))
		if !ok || !ok2 {
			return fmt.Errorf("%s has no place for the tables: %q and %q", path, begin(mark), end(mark))
		}
		if tables != "" {
			text = []byte(before + begin(mark) + "\n\n" + machine() + merged(inside, tables) + "\n" + end(mark) + after)
		}
	}
	return os.WriteFile(path, text, 0o644)
}

func machine() string { return fmt.Sprintf("%d cores, %s.\n\n", runtime.NumCPU(), runtime.Version()) }

func (r *report) service() string {
	const beside = "| operation | callers | bare client /s | empty handler /s | with informer /s | bcsnet /s | of " +
		"informer | of handler | of bare | p99 ms bare / handler / informer / bcsnet | p99 of informer |"
	const spent = "| operation | callers | kube-apiserver: bare / handler / informer / bcsnet | etcd | client, with " +
		"handler or controller |"
	return join(
		table("Throughput and latency beside the floors", beside, r.floors),
		table("Processor time per cycle in ms", spent, r.cpu),
		table("First allocations beside the floors", beside, r.firsts),
		table("Processor time of a first allocation in ms", spent, r.firstCPU),
		table("Size of the pool, and how full it is",
			"| addresses | state | callers | handler with informer /s | bcsnet /s | of informer | p99 of informer |",
			r.sizes),
		table("Requests to the API server per operation", "| operation | requests |", r.costs),
		table("Start, memory, new pools", "| what | median |", r.numbers),
		table("The largest pool", "| what | median |", r.large),
		table(fmt.Sprintf("A network of which %d blocks are owned", owned),
			"| what | turn by turn: median (quartiles), and the medians |", r.blocks),
		table("Allocations with admission policies", switchedHead, r.policies),
		table("HTTPS with a token beside plain HTTP on loopback",
			"| requests | callers | plain /s | HTTPS /s | of plain, turn by turn: median (quartiles) | processor "+
				"time of plain's | p99 ms plain / HTTPS |", r.https),
		table("Beside another build",
			"| operation | callers | other /s | this /s | of the other, turn by turn: median (quartiles) | processor "+
				"time of the other's | p99 ms other / this |", r.builds))
}

func (r *report) overloadTable() string {
	return table("Offered against answered",
		"| build | processors of the API server | offered, times what can be stored | can be stored /s | offered /s | "+
			"answered /s | of what can be stored | refused /s | gave up /s "+
			"| p99 of answered, ms | all served after | processors busy with controller / API server and etcd / load "+
			"generator | the same while what can be stored is measured |", r.overloads)
}

func (r *report) commandLine() string {
	return join(
		table(r.scale, "| command | first row | all rows | of kubectl's time | memory |", r.lists),
		table("Single answers", "| command | ms | memory |", r.quicks),
		r.importTable(),
		r.pageTables())
}

// table formats a table; without rows it returns nothing.
func table(name, head string, rows []string) string {
	if len(rows) == 0 {
		return ""
	}
	columns := strings.Count(head, "|") - 1
	return fmt.Sprintf("%s%s\n\n%s\n|%s\n%s\n", title, name, head, strings.Repeat(" --- |", columns),
		strings.Join(rows, "\n"))
}

func join(tables ...string) string {
	return strings.Join(slices.DeleteFunc(tables, func(t string) bool { return t == "" }), "\n")
}
