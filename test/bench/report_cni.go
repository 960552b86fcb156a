package main

import (
	"fmt"
	"slices"
	"time"
)

// plugin reports bcsnet-ipam as a process.
func (r *report) plugin(t pluginTimes, size, memory int64) {
	beyond := minus(t.add, t.rawAdd)
	for _, row := range []string{
		row("ADD, and a raw allocator call of the same turn", times(t.add)+"; "+times(t.rawAdd), "", true),
		row("ADD beyond the raw call, turn by turn", times(beyond), "", true),
		row("median of ADD beyond the median of the raw call", ms(half(t.add)-half(t.rawAdd))+" ms", "≤ "+ms(addGoal)+" ms",
			half(t.add)-half(t.rawAdd) <= addGoal),
		row("of an ADD, without the start of the process and its end", times(t.inside), "", true),
		row("DEL, and a raw allocator call of the same turn", times(t.del)+"; "+times(t.rawDel), "", true),
		row("DEL beyond the raw call, turn by turn", times(minus(t.del, t.rawDel)), "", true),
		row("VERSION: the start of the process and little else", times(t.version), "", true),
		row("STATUS", times(t.status), "≤ "+ms(statusGoal)+" ms", half(t.status) <= statusGoal),
		row("size of the program", mib(size), "≤ "+mib(sizeGoal), size <= sizeGoal),
		row(fmt.Sprintf("resident memory of an ADD, the most of %d", memoryRuns), mib(memory), "≤ "+mib(memoryGoal),
			memory <= memoryGoal),
	} {
		fmt.Println(row)
		r.plugins = append(r.plugins, row)
	}
}

// row returns a row of the tables of CNI plugins; what has no goal is not said to be reached.
func row(what, found, goal string, reached bool) string {
	answer := ""
	if goal != "" {
		answer = map[bool]string{true: "yes", false: "no"}[reached]
	}
	return fmt.Sprintf("| %s | %s | %s | %s |", what, found, goal, answer)
}

// minus returns how much longer the ones took than the others, turn by turn.
func minus(ones, others []time.Duration) (all []time.Duration) {
	for i := range ones {
		all = append(all, ones[i]-others[i])
	}
	return all
}

// times formats the median and the quartiles.
func times(all []time.Duration) string {
	all = slices.Sorted(slices.Values(all))
	n := len(all)
	return fmt.Sprintf("%s ms (%s to %s)", ms(all[n/2]), ms(all[n/4]), ms(all[n*3/4]))
}

func mib(bytes int64) string { return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20)) }

func (r *report) cniTables() string {
	const head = "| what | found: median (quartiles) | goal | reached |"
	return join(
		table("bcsnet-ipam as a process", head, r.plugins),
		table("Pods on real nodes", head, r.nodes))
}
