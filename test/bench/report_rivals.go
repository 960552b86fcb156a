package main

import (
	"fmt"
	"time"
)

// Goals of bcsnet-ipam, as shares of host-local's time.
const (
	wallGoal = 1.5
	cpuGoal  = 1.25
)

const rivalsHead = "| called | containers at once | plugin | wall time | processor time of a container | of " +
	"host-local's wall time, turn by turn: median (quartiles) | goal | reached | of host-local's processor time | " +
	"goal | reached |"

// way says how the plugins were called.
func (m match) way() string {
	if m.Below == "" {
		return "directly"
	}
	return "by " + m.Below
}

// match reports the turns of IPAM plugins.
func (r *report) match(m match) {
	local := results(m.Turns[hostLocal])
	for _, name := range []string{hostLocal, ours, whereabouts} {
		all := results(m.Turns[name])
		if len(all) == 0 {
			continue
		}
		var walls, cpus []time.Duration
		for _, t := range m.Turns[name] {
			walls, cpus = append(walls, t.Wall), append(cpus, t.CPU/time.Duration(m.AtOnce))
		}
		goal := func(of func(result) float64, most float64) string {
			if name != ours || m.Below == "" {
				return " | "
			}
			return fmt.Sprintf("≤ %.2f | %s", most, yesNo(ratios(all, local, of)[len(all)/2] <= most))
		}
		row := fmt.Sprintf("| %s | %d | %s | %s ms | %s ms | %s | %s | %s | %s |", m.way(), m.AtOnce, name,
			ms(half(walls)), ms(half(cpus)), byTurn(all, local, typical), goal(typical, wallGoal),
			byTurn(all, local, spent), goal(spent, cpuGoal))
		fmt.Println(row)
		r.rivals = append(r.rivals, row)
	}
}

// results returns turns in the form of the other measurements.
func results(turns []turnTimes) (all []result) {
	for _, t := range turns {
		all = append(all, result{p50: t.Wall, cpu: map[string]time.Duration{"": t.CPU}})
	}
	return all
}
