package main

import "fmt"

// policyGoal is the rate with admission policies, of that without.
const policyGoal = 0.98

// policy reports allocations with admission policies and without, which took turns.
func (r *report) policy(callers int, with, without []result) {
	reached := "no"
	if all := ratios(with, without, rate); all[len(all)/2] >= policyGoal {
		reached = "yes"
	}
	row := fmt.Sprintf("| %d | %.0f | %.0f | %s | %s | ≥ %.2f | %s |", callers, median(without).perSecond,
		median(with).perSecond, byTurn(with, without, rate), byTurn(with, without, spent), policyGoal, reached)
	fmt.Println(row)
	r.policies = append(r.policies, row)
}

func (r *report) policyTable() string {
	return table("Allocations with admission policies",
		"| callers | without /s | with /s | of without, turn by turn: median (quartiles) | processor time of "+
			"without's | goal | reached |", r.policies)
}
