package resource

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// Period is the period of the flags --since and --until.
type Period struct {
	since, until string
	// Since and Until are its ends; a zero time means open.
	Since, Until time.Time
}

// AddTo adds the flags. which is the default of --since; empty means no bound.
func (p *Period) AddTo(cmd *cobra.Command, which string) {
	cmd.Flags().StringVar(&p.since, "since", which,
		"from this `TIME` on: how long ago, as 24h or 7d, or 2026-05-04T03:00:00Z")
	cmd.Flags().StringVar(&p.until, "until", "", "up to this `TIME`, written as for --since; now without it")
	app.Complete(cmd, "since", "1h", "24h", "7d", "30d")
	app.Complete(cmd, "until", "1h", "24h", "7d")
}

// Validate reads the times.
func (p *Period) Validate(now time.Time) (err error) {
	if p.Since, err = moment("since", p.since, now); err != nil {
		return err
	}
	if p.Until, err = moment("until", p.until, now); err != nil {
		return err
	}
	if !p.Until.IsZero() && !p.Since.IsZero() && !p.Until.After(p.Since) {
		return app.Usagef("--until %s is not after --since %s", TimeText(p.Until), TimeText(p.Since))
	}
	return nil
}

// PeriodSince returns the open period that begins at a time in the notation of --since.
func PeriodSince(text string, now time.Time) (p Period, err error) {
	p.since = text
	return p, p.Validate(now)
}

// Has reports whether the interval from since to until overlaps the period.
func (p *Period) Has(since, until time.Time) bool {
	return !until.Before(p.Since) && (p.Until.IsZero() || !since.After(p.Until))
}

// moment parses a time of a flag: RFC 3339, or a duration before now. An empty text returns the zero time.
func moment(flag, text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t, nil
	}
	ago, err := time.ParseDuration(text)
	if number, ok := strings.CutSuffix(text, "d"); ok {
		var days uint64
		days, err = strconv.ParseUint(number, 10, 16)
		ago = time.Duration(days) * 24 * time.Hour
	}
	if err != nil || ago < 0 {
		return time.Time{}, app.Usagef("--%s %q is not a time", flag, text).
			WithHint("write how long ago, as 24h or 7d, or a time as %s", fmt.Sprint(now.UTC().Format(time.RFC3339)))
	}
	return now.Add(-ago), nil
}

// Always returns a time after all others, as the end of something that continues.
func Always() time.Time { return time.Unix(1<<40, 0) }

// UntilText formats the time until which a claim keeps an address. It returns an invalid time unchanged.
func UntilText(stored string) string {
	t, err := time.Parse(time.RFC3339Nano, stored)
	if err != nil {
		return stored
	}
	return TimeText(t)
}

// TimeText formats a time for tables: UTC, to the second.
func TimeText(t time.Time) string { return store.FormatTime(t.Truncate(time.Second)) }
