// Package scrape has the page of metrics. Its memory stays small for any number of readers, however slow they are.
package scrape

import (
	"net/http"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/common/expfmt"

	"github.com/bcsnet/bcsnet/pkg/serving/port"
)

// Page returns the page of metrics: as text or as protobuf, compressed for readers that ask for that.
func Page(metrics prometheus.Gatherer) http.Handler {
	page := port.NewPage(promhttp.HandlerFor(metrics, promhttp.HandlerOpts{}), func(r *http.Request) string {
		return r.Header.Get("Accept") + r.Header.Get("Accept-Encoding")
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { page.ServeHTTP(w, plainly(r)) })
}

// plainly returns a request reduced to the few properties that matter: each combination is a kind of page.
func plainly(r *http.Request) *http.Request {
	format := expfmt.TypeTextPlain
	if expfmt.NegotiateAccept(r.Header, expfmt.DefaultAcceptedFormats()...).FormatType() == expfmt.TypeProtoDelim {
		format = expfmt.TypeProtoDelim
	}
	out := r.Clone(r.Context())
	out.Header = http.Header{"Accept": {string(expfmt.NewFormat(format))}}
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		out.Header.Set("Accept-Encoding", "gzip")
	}
	return out
}
