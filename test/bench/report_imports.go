package main

import "fmt"

// Goals of an import: its creates a second of those of a bare client, and its memory in bytes.
const (
	importGoal   = 0.8
	importMemory = 300 << 20
)

// importTurns reports imports of n leases each, which took turns with the bare client.
func (r *report) importTurns(n int, bare, ours []result) {
	all := ratios(ours, bare, rate)
	r.imported(fmt.Sprintf("| import of %d leases, turn by turn | %.0f | %.0f | %s | | | ≥ %.1f | %s |", n,
		median(bare).perSecond, median(ours).perSecond, byTurn(ours, bare, rate), importGoal,
		yesNo(all[len(all)/2] >= importGoal)))
}

// importOnce reports an import of n leases of as many pods, or one that finds them here already.
func (r *report) importOnce(n int, c call, writes int, bare result, again bool) {
	memory := fmt.Sprintf("%d MB", c.rss>>20)
	if again {
		r.imported(fmt.Sprintf("| the same again, %.1f s | | | | %s | %d | no write | %s |", c.total.Seconds(), memory,
			writes, yesNo(writes == 0)))
		return
	}
	perSecond := float64(n) / c.total.Seconds()
	reached := perSecond >= importGoal*bare.perSecond && c.rss <= importMemory
	const row = "| import of %d leases of as many pods | %.0f | %.0f | %s | %s | %d | ≥ %.1f, ≤ %d MB | %s |"
	r.imported(fmt.Sprintf(row, n, bare.perSecond, perSecond, ratio(perSecond, bare.perSecond), memory, writes,
		importGoal, importMemory>>20, yesNo(reached)))
}

func (r *report) imported(row string) {
	fmt.Println(row)
	r.imports = append(r.imports, row)
}

func (r *report) importTable() string {
	return table("Imports from Calico", "| what | bare client /s | import /s | of bare | memory | writes of "+
		"BCSNetIPs | goal | reached |", r.imports)
}
