package node

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/bcsnet/bcsnet/pkg/serving/port"
	"github.com/bcsnet/bcsnet/pkg/serving/scrape"
)

// serve serves metrics and probes until the context ends.
func serve(
	ctx context.Context, o Options, ready func() error, registry *prometheus.Registry, log *slog.Logger,
) error {
	if o.HTTPBindAddress == "0" {
		return nil
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.HTTPBindAddress)
	if err != nil {
		return fmt.Errorf("serve metrics and probes: %w; hint: --http-bind-address", err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", scrape.Page(registry))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := ready(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	return port.Serve(ctx, listener, mux, log)
}
