package top

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	// trendTime is the period of a trend.
	trendTime = 10 * time.Minute
	// trendLeast is the minimum period of a rate: one address in the first second does not mean sixty in a minute.
	trendLeast = time.Minute
)

// trend computes the rate of change of a watched count. With one count the rate is 0.
type trend struct {
	now     func() time.Time
	samples []sample
}

type sample struct {
	at time.Time
	n  int64
}

// add records a count. Of the counts older than trendTime it keeps the last.
func (t *trend) add(n int64) {
	at := t.now()
	if last := len(t.samples) - 1; last >= 0 && t.samples[last].n == n {
		return
	}
	t.samples = append(t.samples, sample{at, n})
	first := slices.IndexFunc(t.samples, func(s sample) bool { return at.Sub(s.at) < trendTime })
	if first > 1 {
		t.samples = slices.Delete(t.samples, 0, first-1)
	}
}

// perMinute returns the change per minute over the last ten minutes, or since the watch began.
func (t *trend) perMinute() float64 {
	now := t.now()
	if len(t.samples) == 0 {
		return 0
	}
	from := t.samples[0]
	for _, s := range t.samples {
		if now.Sub(s.at) >= trendTime {
			from = s
		}
	}
	over := min(max(now.Sub(from.at), trendLeast), trendTime)
	return float64(t.samples[len(t.samples)-1].n-from.n) / over.Minutes()
}

func rateText(rate float64) string {
	if rate == 0 {
		return "0"
	}
	return strings.TrimSuffix(fmt.Sprintf("%+.1f", rate), ".0") + "/min"
}
