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
		row("median of ADD beyond the median of the raw call", ms(half(t.add)-half(t.rawAdd))+" ms",
			"≤ "+ms(addGoal)+" ms", half(t.add)-half(t.rawAdd) <= addGoal),
		row("ADD over TLS with a token, same turn", times(t.secureAdd), "", true),
		row("ADD over TLS with a token beyond the raw call, turn by turn", times(minus(t.secureAdd, t.rawAdd)), "",
			true),
		row("median of ADD over TLS with a token beyond the median of the raw call",
			ms(half(t.secureAdd)-half(t.rawAdd))+" ms", "≤ "+ms(secureGoal)+" ms",
			half(t.secureAdd)-half(t.rawAdd) <= secureGoal),
		row("of an ADD, without the start of the process and its end", times(t.inside), "", true),
		row("DEL, and a raw allocator call of the same turn", times(t.del)+"; "+times(t.rawDel), "", true),
		row("DEL beyond the raw call, turn by turn", times(minus(t.del, t.rawDel)), "", true),
		row("DEL over TLS with a token, same turn", times(t.secureDel), "", true),
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
		answer = yesNo(reached)
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
		table("ADD and DEL beside other IPAM plugins", rivalsHead, r.rivals),
		table("Pods on real nodes", head, r.nodes))
}

// Goals of pods on real nodes.
const (
	readyGoal  = 1.15
	probeGoal  = 250 * time.Millisecond
	reusedGoal = time.Second
)

// podsOnNodes reports pods on real nodes.
func (r *report) podsOnNodes(t nodeTimes) {
	plain := t.Ready[hostLocal]
	longer := float64(half(t.Ready[announced])) / float64(half(plain))
	later := half(t.Ready[probed]) - half(plain)
	late := slices.Max(t.Reused[reused])
	beyond := func(times map[string][]time.Duration, network string) []time.Duration {
		return minus(times[network], times[hostLocal])
	}
	r.nodes = append(r.nodes,
		row(fmt.Sprintf("from Create to Ready, host-local, %d pods each", len(plain)), times(plain), "", true),
		row("the same, bcsnet-ipam alone", times(t.Ready[leased]), "", true),
		row("beyond host-local's, turn by turn", times(beyond(t.Ready, leased)), "", true),
		row("the same, with announcement", times(t.Ready[announced]), "", true),
		row("of host-local's, the medians", fmt.Sprintf("%.2f", longer), fmt.Sprintf("≤ %.2f", readyGoal),
			longer <= readyGoal),
		row("beyond host-local's, turn by turn", times(beyond(t.Ready, announced)), "", true),
		row("the same, with announcement and probe", times(t.Ready[probed]), "", true),
		row("beyond host-local's, the medians", ms(later)+" ms", "≤ "+ms(probeGoal)+" ms", later <= probeGoal),
		row("beyond host-local's, turn by turn", times(beyond(t.Ready, probed)), "", true),
		row("the sandbox of these, host-local", times(t.Sandbox[hostLocal]), "", true),
		row("bcsnet-ipam alone, beyond that, turn by turn", times(beyond(t.Sandbox, leased)), "", true),
		row("with announcement, beyond that, turn by turn", times(beyond(t.Sandbox, announced)), "", true),
		row("with announcement and probe, beyond that, turn by turn", times(beyond(t.Sandbox, probed)), "", true),
		row(fmt.Sprintf("from Ready until a stale peer reaches a reused address, announced, the longest of %d",
			len(t.Reused[reused])), ms(late)+" ms", "< "+ms(reusedGoal)+" ms", late < reusedGoal),
		row("the same, announced", times(t.Reused[reused]), "", true),
		row("the same, not announced", times(t.Reused[silent]), "", true),
	)
	for _, row := range r.nodes {
		fmt.Println(row)
	}
}
