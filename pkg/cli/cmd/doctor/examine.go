package doctor

import (
	"context"
	"maps"
	"slices"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/view"
	"github.com/bcsnet/bcsnet/pkg/doctor"
)

// Examine returns a function for commands that change nothing if the cluster has problems. The function runs all checks
// except skip, and returns the findings and the parts of the cluster that could not be read.
func Examine(s *app.App) func(ctx context.Context, skip ...string) ([]doctor.Finding, []doctor.Part, error) {
	return func(ctx context.Context, skip ...string) ([]doctor.Finding, []doctor.Part, error) {
		checks, _ := doctor.Select(nil, skip)
		snapshot, err := view.Snapshot(ctx, s, doctor.Reads(checks))
		if err != nil {
			return nil, nil, err
		}
		report := doctor.Examine(snapshot, checks)
		return report.Findings, slices.Sorted(maps.Keys(report.Skipped)), nil
	}
}
