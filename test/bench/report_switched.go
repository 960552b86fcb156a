package main

import "fmt"

// switchedGoal is the rate of allocations while something is on, of that while it is off.
const switchedGoal = 0.98

// switchedHead is the head of a table of switched.
const switchedHead = "| callers | without /s | with /s | of without, turn by turn: median (quartiles) | processor " +
	"time of without's | goal | reached |"

// switched returns the row of allocations with something and without, which took turns, and shows it.
func switched(callers int, with, without []result) string {
	all := ratios(with, without, rate)
	row := fmt.Sprintf("| %d | %.0f | %.0f | %s | %s | ≥ %.2f | %s |", callers, median(without).perSecond,
		median(with).perSecond, byTurn(with, without, rate), byTurn(with, without, spent), switchedGoal,
		yesNo(all[len(all)/2] >= switchedGoal))
	fmt.Println(row)
	return row
}

func yesNo(reached bool) string {
	if reached {
		return "yes"
	}
	return "no"
}
