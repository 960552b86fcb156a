package main

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// pageBytes is the goal for the size of a page, compressed. paintGoal is that for its beginning.
const (
	pageBytes = 150 << 10
	paintGoal = time.Second
)

// page reports a page of bcsnetctl ui by the run of the median time. Without a goal for the time it is 0.
func (r *report) page(path string, all []page, goal time.Duration) {
	slices.SortFunc(all, func(a, b page) int { return cmp.Compare(a.last, b.last) })
	p := all[len(all)/2]
	goals, reached := fmt.Sprintf("≤ %d KB, begins ≤ %.0f s", pageBytes>>10, paintGoal.Seconds()),
		p.bytes <= pageBytes && p.first <= paintGoal
	if goal > 0 {
		goals, reached = fmt.Sprintf("%s, ends ≤ %.0f s", goals, goal.Seconds()), reached && p.last <= goal
	}
	row := fmt.Sprintf("| %#q | %s | %s | %d KB | %s | %s |", path, ms(p.first), ms(p.last), p.bytes>>10, goals,
		yesNo(reached))
	fmt.Println(row)
	r.pages = append(r.pages, row)
}

func (r *report) pageTables() string {
	return join(
		table(fmt.Sprintf("Pages of bcsnetctl ui: 200 pools, one in %d blocks", owned),
			"| page | ms to the first byte | ms to the last byte | compressed | goals | reached |", r.pages),
		table(fmt.Sprintf("Allocations while %d viewers follow pages", viewers), switchedHead, r.viewed))
}
