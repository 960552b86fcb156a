package view

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// far is the time beyond which nobody can say when a pool is full.
const far = 30 * 24 * time.Hour

// Trend says in which time a pool is full if its use changes as before.
type Trend struct {
	// Soonest and Latest bound that time. A Latest of 0 means that there is no bound. Both are 0 if it is not in sight.
	Soonest, Latest time.Duration
	// Source says what was counted.
	Source string
}

// String returns the times and what was counted.
func (t *Trend) String() string { return fmt.Sprintf("%s (%s)", t.Time(), t.Source) }

// Time returns the range of times, in words.
func (t *Trend) Time() string {
	soonest, latest := duration.HumanDuration(t.Soonest), duration.HumanDuration(t.Latest)
	switch {
	case t.Soonest == 0:
		return "not in sight"
	case t.Latest == 0:
		return soonest + " at the soonest"
	case soonest == latest:
		return soonest
	}
	return soonest + " to " + latest
}

// Object returns the trend for -o json and similar formats, in seconds.
func (t *Trend) Object() map[string]any {
	o := map[string]any{"source": t.Source}
	for name, bound := range map[string]time.Duration{"soonestSeconds": t.Soonest, "latestSeconds": t.Latest} {
		if bound > 0 {
			o[name] = int64(bound.Seconds())
		}
	}
	return o
}

// trendOf returns the trend of a pool with free addresses. rates says how many addresses more are taken each hour, by
// different periods; negative if there are fewer.
func trendOf(free int64, rates []float64, source string) *Trend {
	t, open := &Trend{Source: source}, false
	for _, rate := range rates {
		hours := float64(free) / rate
		if rate <= 0 || hours > far.Hours() {
			open = true
			continue
		}
		in := max(time.Second, time.Duration(hours*float64(time.Hour)).Round(time.Minute))
		if t.Soonest == 0 || in < t.Soonest {
			t.Soonest = in
		}
		t.Latest = max(t.Latest, in)
	}
	if open {
		t.Latest = 0
	}
	return t
}

// periods returns those of the rates of a trend, the shortest first. A pool that is younger than the first has none.
func periods() []time.Duration { return []time.Duration{time.Hour, 6 * time.Hour, 24 * time.Hour} }

// turnover counts the leases of a pool that began in each of the periods, and the addresses that were given back.
type turnover struct{ begun, ended [3]int64 }

// count counts one address.
func (c *turnover) count(l lease.Lease, now time.Time) {
	if l.Updated.IsZero() {
		return
	}
	of := &c.begun
	if l.State == lease.Available {
		of = &c.ended
	}
	for i, period := range periods() {
		if now.Sub(l.Updated) < period {
			of[i]++
		}
	}
}

// rates returns the growth an hour of a pool of an age. Its bounds are all leases that began, and these less the
// addresses that were given back. If more were given back the period has no growth.
func (c *turnover) rates(age time.Duration) (all []float64) {
	for i, period := range periods() {
		switch net := c.begun[i] - c.ended[i]; {
		case age < period:
		case net <= 0:
			all = append(all, 0)
		default:
			all = append(all, float64(c.begun[i])/period.Hours(), float64(net)/period.Hours())
		}
	}
	return all
}

// The sources of trends.
const (
	byPrometheus = "by Prometheus"
	byLeases     = "by when the present leases began"
)

// Foresee sets the trend of a pool that has free addresses, by Prometheus or else by its leases. It says why Prometheus
// was not used. from may be nil.
func (d *Pool) Foresee(ctx context.Context, s *app.App, from *Prometheus) {
	free := d.Room().Free
	if free <= 0 || d.DeletionTimestamp != nil {
		return
	}
	if from.Given() && !resource.IsBlock(d.Pool) {
		rates, err := from.rates(ctx, d.Name, s.Now())
		if err == nil {
			d.Trend = trendOf(free, rates, byPrometheus)
			return
		}
		s.Say.Warn("%v; the start times of the leases are used instead", err)
	}
	if rates := d.turnover.rates(d.now.Sub(d.CreationTimestamp.Time)); len(rates) > 0 {
		d.Trend = trendOf(free, rates, byLeases)
	}
}

// Trends returns the trends of pools by name, only by Prometheus. It says why there are none.
func Trends(ctx context.Context, s *app.App, from *Prometheus, pools []resource.Pool) map[string]*Trend {
	all := map[string]*Trend{}
	if !from.Given() {
		return nil
	}
	series, err := from.read(ctx, s.Now())
	if err != nil {
		s.Say.Warn("%v; the time until a pool is full is left out", err)
		return nil
	}
	for _, p := range pools {
		rates := growth(series[p.Name], s.Now())
		if free := p.Status.Available; resource.Counted(p.BCSNetPool) && free > 0 && len(rates) > 0 {
			all[p.Name] = trendOf(free, rates, byPrometheus)
		}
	}
	return all
}
