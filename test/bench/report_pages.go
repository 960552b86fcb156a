package main

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// pageBytes is the goal for the size of a page, compressed. paintGoal is that for its beginning, clickGoal that for the
// time from a click until the page is drawn again.
const (
	pageBytes = 150 << 10
	paintGoal = time.Second
	clickGoal = 100 * time.Millisecond
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

// viewing reports the processor time of 1,000 allocations with their releases, with viewers and without.
func (r *report) viewing(with, without []result) {
	of := func(rs []result, process string) float64 { return 1000 * median(rs).cpu[process].Seconds() }
	for _, process := range []string{"bcsnetctl", "kube-apiserver"} {
		row := fmt.Sprintf("| %#q | %.3f s | %.3f s |", process, of(without, process), of(with, process))
		fmt.Println(row)
		r.viewers = append(r.viewers, row)
	}
}

// click reports how long clicks took while objects of the page changed.
func (r *report) click(perSecond float64, all []time.Duration) {
	slices.Sort(all)
	longest := all[len(all)-1]
	row := fmt.Sprintf("| %.0f | %d | %s | %s | ≤ %s ms | %s |", perSecond, len(all), ms(all[len(all)/2]), ms(longest),
		ms(clickGoal), yesNo(longest <= clickGoal))
	fmt.Println(row)
	r.clicks = append(r.clicks, row)
}

func (r *report) pageTables() string {
	return join(
		table(fmt.Sprintf("Pages of bcsnetctl ui: 200 pools, one in %d blocks", owned),
			"| page | ms to the first byte | ms to the last byte | compressed | goals | reached |", r.pages),
		table(fmt.Sprintf("Allocations while %d viewers follow pages", viewers), switchedHead, r.viewed),
		table("Processor time of 1,000 allocations and their releases",
			fmt.Sprintf("| process | without viewers | with %d viewers |", viewers), r.viewers),
		table("A page in a browser while its pool changes",
			"| changes /s | clicks | ms until drawn, median | ms, longest | goal | reached |", r.clicks))
}
