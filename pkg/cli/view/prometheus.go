package view

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/api"
	prometheus "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"github.com/spf13/cobra"
	"k8s.io/client-go/transport"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
)

const (
	// freeAddresses is the query for the free addresses of all pools. It is that of the alerts.
	freeAddresses = `max by (pool) (bcsnet_pool_addresses{state="free"})`
	// prometheusStep is the interval of the samples.
	prometheusStep = 20 * time.Minute
	// prometheusTime is the time limit of a query. An answer, or why there was none, is used for prometheusKept.
	prometheusTime = 3 * time.Second
	prometheusKept = time.Minute
	// prometheusSize bounds an answer in bytes, prometheusText the words of an error.
	prometheusSize = 16 << 20
	prometheusText = 200
)

// Prometheus is the server, named by flags, that has the metrics of the cluster.
type Prometheus struct {
	url, tokenFile, caFile string
	client                 prometheus.API

	mu     sync.Mutex
	asked  time.Time
	series map[string][]model.SamplePair
	err    error
}

// AddTo adds the flags.
func (p *Prometheus) AddTo(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&p.url, "prometheus", "",
		"say when pools are full by the Prometheus at this `URL`, which has the metrics of the cluster")
	f.StringVar(&p.tokenFile, "prometheus-token-file", "",
		"the `FILE` with a bearer token for --prometheus, over https")
	f.StringVar(&p.caFile, "prometheus-ca-file", "",
		"the `FILE` with the CA of --prometheus; default: the system's CAs")
	app.Complete(cmd, "prometheus")
}

// Validate reads the flags and the files that they name.
func (p *Prometheus) Validate() error {
	if p.url == "" {
		if p.tokenFile != "" || p.caFile != "" {
			return app.Usagef("--prometheus-token-file and --prometheus-ca-file go with --prometheus")
		}
		return nil
	}
	at, err := url.Parse(p.url)
	if err != nil || at.Scheme != "https" && at.Scheme != "http" || at.Host == "" || at.RawQuery != "" ||
		at.User != nil {
		return app.Usagef("--prometheus is not the URL of a Prometheus").
			WithHint("write it as https://prometheus.example.com")
	}
	if p.tokenFile != "" && at.Scheme != "https" {
		return app.Usagef("--prometheus-token-file needs an https address: the token could be read on its way")
	}
	way, err := transport.New(&transport.Config{
		BearerTokenFile: p.tokenFile, TLS: transport.TLSConfig{CAFile: p.caFile},
	})
	if err != nil {
		return app.Usagef("the files for --prometheus cannot be used: %v", err)
	}
	c, err := api.NewClient(api.Config{Address: p.url, Client: &http.Client{
		Transport: bounded{way},
		// The token is only for this server.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}})
	if err != nil {
		return app.Usagef("--prometheus cannot be used: %v", err)
	}
	p.client = prometheus.NewAPI(c)
	return nil
}

// Given reports whether there is a Prometheus to ask. p may be nil.
func (p *Prometheus) Given() bool { return p != nil && p.client != nil }

// rates returns the growth of a pool in addresses an hour, by period.
func (p *Prometheus) rates(ctx context.Context, pool string, now time.Time) ([]float64, error) {
	series, err := p.read(ctx, now)
	if err != nil {
		return nil, err
	}
	rates := growth(series[pool], now)
	if len(rates) == 0 {
		return nil, fmt.Errorf("the Prometheus at %s has no hour of bcsnet_pool_addresses for pool %s", p.url, pool)
	}
	return rates, nil
}

// read returns the free addresses of all pools in the longest period. It asks once for all who want to know at the same
// time.
func (p *Prometheus) read(ctx context.Context, now time.Time) (map[string][]model.SamplePair, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.asked.IsZero() && now.Sub(p.asked) < prometheusKept {
		return p.series, p.err
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), prometheusTime) // others wait for it, too
	defer stop()
	p.series, p.err = p.query(ctx, now)
	p.asked = now
	return p.series, p.err
}

func (p *Prometheus) query(ctx context.Context, now time.Time) (map[string][]model.SamplePair, error) {
	all := periods()
	value, _, _, err := p.client.QueryRange(ctx, freeAddresses,
		prometheus.Range{Start: now.Add(-all[len(all)-1]), End: now, Step: prometheusStep},
		prometheus.WithTimeout(prometheusTime))
	if err != nil {
		return nil, p.problem(err)
	}
	matrix, ok := value.(model.Matrix)
	if !ok {
		return nil, fmt.Errorf("the Prometheus at %s does not answer with series", p.url)
	}
	if len(matrix) == 0 {
		return nil, fmt.Errorf("the Prometheus at %s has no bcsnet_pool_addresses: it may not scrape the controller",
			p.url)
	}
	series := map[string][]model.SamplePair{}
	for _, one := range matrix {
		series[string(one.Metric["pool"])] = one.Values
	}
	return series, nil
}

// problem says in words why a query failed.
func (p *Prometheus) problem(err error) error {
	what := err.Error()
	large, _ := errors.AsType[*http.MaxBytesError](err)
	refused, _ := errors.AsType[*url.Error](err)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		what = "it did not answer within " + prometheusTime.String()
	case large != nil:
		what = fmt.Sprintf("its answer has more than %d MiB", prometheusSize>>20)
	case refused != nil:
		what = refused.Err.Error()
	}
	if short := []rune(what); len(short) > prometheusText {
		what = strings.TrimSpace(string(short[:prometheusText])) + " …"
	}
	return fmt.Errorf("the Prometheus at %s cannot be used: %s", p.url, what)
}

// growth returns by how much the taken addresses grow each hour, for each period that the samples of the free ones
// cover. It fits a line, as the alerts do, and ignores samples that are not numbers.
func growth(free []model.SamplePair, now time.Time) (rates []float64) {
	for _, period := range periods() {
		var n, x, y, xx, xy, first float64
		for _, one := range free {
			hours, v := one.Timestamp.Time().Sub(now).Hours(), float64(one.Value)
			if hours < -period.Hours()-prometheusStep.Hours()/2 || hours > 0 || math.IsNaN(v) || math.IsInf(v, 0) {
				continue
			}
			first = min(first, hours)
			n, x, y, xx, xy = n+1, x+hours, y+v, xx+hours*hours, xy+hours*v
		}
		if below := n*xx - x*x; n >= 3 && below > 0 && -first >= 0.9*period.Hours() {
			rates = append(rates, -(n*xy-x*y)/below)
		}
	}
	return rates
}

// bounded limits the size of a server's answers to prometheusSize bytes.
type bounded struct{ http.RoundTripper }

// RoundTrip sends a request.
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := b.RoundTripper.RoundTrip(r)
	if err == nil {
		answer.Body = http.MaxBytesReader(nil, answer.Body, prometheusSize)
	}
	return answer, err
}
