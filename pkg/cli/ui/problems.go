package ui

import (
	"context"
	"time"

	"github.com/bcsnet/bcsnet/pkg/cli/view"
	"github.com/bcsnet/bcsnet/pkg/doctor"
)

// problemsModel is what the checks of doctor found.
type problemsModel struct {
	Checks  []checked
	Ran     int
	Skipped []skipped
	When    time.Time
}

// checked is what one check found.
type checked struct {
	doctor.Check
	Findings []doctor.Finding
	More     int
}

// fewFindings is how many findings of a check are unfolded.
const fewFindings = 10

// First returns the findings that are unfolded, Rest the others.
func (c checked) First() []doctor.Finding { return c.Findings[:min(len(c.Findings), fewFindings)] }

// Rest returns the findings that are folded.
func (c checked) Rest() []doctor.Finding { return c.Findings[len(c.First()):] }

// Common returns the command that mends all findings of a check; empty where they differ.
func (c checked) Common() string {
	for _, f := range c.Findings {
		if f.Fix != c.Findings[0].Fix {
			return ""
		}
	}
	return c.Findings[0].Fix
}

// found returns a finding without the command that is shown for all.
func found(f doctor.Finding, common string) doctor.Finding {
	if f.Fix == common {
		f.Fix = ""
	}
	return f
}

// skipped are the checks that a part of the cluster is missing for.
type skipped struct {
	Part doctor.Part
	Why  error
	IDs  []string
}

// mostFindings bounds what is shown of one check.
const mostFindings = 100

// problemsPage runs the checks of doctor. It reads the whole cluster, so the page is not followed.
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
