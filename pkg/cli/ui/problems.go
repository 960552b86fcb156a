package ui

import (
	"context"
	"time"

	"github.com/bcsnet/bcsnet/pkg/cli/view"
	"github.com/bcsnet/bcsnet/pkg/doctor"
)

// problemsModel has the findings of doctor.
type problemsModel struct {
	Checks  []checked
	Ran     int
	Skipped []skipped
	When    time.Time
}

// checked has the findings of one check.
type checked struct {
	doctor.Check
	Findings []doctor.Finding
	More     int
}

// fewFindings is the number of unfolded findings of a check.
const fewFindings = 10

// First returns the unfolded findings, Rest the folded ones.
func (c checked) First() []doctor.Finding { return c.Findings[:min(len(c.Findings), fewFindings)] }

// Rest returns the folded findings.
func (c checked) Rest() []doctor.Finding { return c.Findings[len(c.First()):] }

// Common returns the command that fixes most findings of a check; empty if no command fixes more than half.
func (c checked) Common() string {
	fixes := map[string]int{}
	for _, f := range c.Findings {
		if fixes[f.Fix]++; 2*fixes[f.Fix] > len(c.Findings) {
			return f.Fix
		}
	}
	return ""
}

// found returns a finding without the command that is shown for all.
func found(f doctor.Finding, common string) doctor.Finding {
	if f.Fix == common {
		f.Fix = ""
	}
	return f
}

// skipped has the checks that a missing part of the cluster prevented.
type skipped struct {
	Part doctor.Part
	Why  error
	IDs  []string
}

// mostFindings bounds the findings of one check on the page.
const mostFindings = 100

// problemsPage runs the checks of doctor. Browsers do not follow it, because it reads the whole cluster.
func problemsPage(ctx context.Context, q *request) (*page, error) {
	snapshot, err := view.Snapshot(ctx, q.App, doctor.Reads(doctor.Checks()))
	if err != nil {
		return nil, err
	}
	report := doctor.Examine(snapshot, doctor.Checks())
	m := problemsModel{Ran: len(report.Ran), When: snapshot.Now}
	by := map[string]doctor.Check{}
	for _, c := range report.Ran {
		by[c.ID] = c
	}
	for _, f := range report.Findings {
		if n := len(m.Checks); n == 0 || m.Checks[n-1].ID != f.Check {
			m.Checks = append(m.Checks, checked{Check: by[f.Check]})
		}
		of := &m.Checks[len(m.Checks)-1]
		if len(of.Findings) == mostFindings {
			of.More++
			continue
		}
		of.Findings = append(of.Findings, f)
	}
	for _, part := range doctor.Parts() {
		if ids := report.Skipped[part]; len(ids) > 0 {
			m.Skipped = append(m.Skipped, skipped{part, snapshot.Missing[part], ids})
		}
	}
	p := &page{Title: "Problems", Here: "problems"}
	return p, q.sections(p, m, "problems")
}
