package top

import (
	"testing"
	"time"
)

func TestTrend(t *testing.T) {
	began := time.Date(2026, 1, 1, 3, 0, 0, 0, time.UTC)
	type count struct {
		after time.Duration
		n     int64
	}
	for name, tc := range map[string]struct {
		counts []count
		now    time.Duration
		want   string
	}{
		"nothing seen":                      {nil, time.Minute, "0"},
		"no change":                         {[]count{{0, 7}}, time.Hour, "0"},
		"the first second is not scaled":    {[]count{{0, 7}, {time.Second, 8}}, time.Second, "+1/min"},
		"since the view began":              {[]count{{0, 0}, {3 * time.Minute, 10}}, 4 * time.Minute, "+2.5/min"},
		"given back":                        {[]count{{0, 10}, {time.Minute, 4}}, 2 * time.Minute, "-3/min"},
		"taken and given back is no change": {[]count{{0, 10}, {time.Minute, 14}, {2 * time.Minute, 10}}, 2 * time.Minute, "0"},
		"what is old no longer counts":      {[]count{{0, 0}, {time.Minute, 90}, {30 * time.Minute, 100}}, 30 * time.Minute, "+1/min"},
		"it fades when nothing changes":     {[]count{{0, 0}, {time.Minute, 90}}, time.Hour, "0"},
		"far less than one":                 {[]count{{0, 0}, {time.Minute, 1}}, 10 * time.Minute, "+0.1/min"},
	} {
		t.Run(name, func(t *testing.T) {
			var now time.Time
			all := trend{now: func() time.Time { return now }}
			for _, c := range tc.counts {
				now = began.Add(c.after)
				all.add(c.n)
			}
			now = began.Add(tc.now)
			if got := rateText(all.perMinute()); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

// TestTrendForgets: a view that stays open for days does not grow.
func TestTrendForgets(t *testing.T) {
	at := time.Date(2026, 1, 1, 3, 0, 0, 0, time.UTC)
	all := trend{now: func() time.Time { return at }}
	for i := range int64(10_000) {
		at = at.Add(time.Second)
		all.add(i)
	}
	if n := len(all.samples); n > 601 {
		t.Errorf("%d samples are kept", n)
	}
}
