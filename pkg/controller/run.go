package controller

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"time"

	"k8s.io/client-go/rest"

	"github.com/bcsnet/bcsnet/pkg/store"
)

// Run runs the controller until the context ends, then finishes the requests in progress. Several may run in one
// process.
func Run(ctx context.Context, o Options) error {
	cfg, err := restConfig(o.Kubeconfig)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", o.HTTPBindAddress)
	if err != nil {
		return fmt.Errorf("--http-bind-address: %w", err)
	}
	return Serve(ctx, cfg, listener, hurried(o))
}

// Serve does the same as Run, with the caller's client configuration and listener. It closes the listener.
func Serve(ctx context.Context, cfg *rest.Config, listener net.Listener, o Options) error {
	log, restores := o.Logger(), store.NewRestores()
	cfg = wrapped(cfg, restores, log)
	mgr, err := newManager(cfg, o, log)
	if err != nil {
		_ = listener.Close() // the first error counts
		return err
	}
	server, elect, err := assemble(ctx, mgr, cfg, restores, o, listener, log)
	if err != nil {
		_ = listener.Close() // the first error counts
		return err
	}
	log.Info("starting", "http", listener.Addr().String(), "api-server", cfg.Host)
	return startAndDrain(ctx, mgr, server, elect, log)
}

// reportReady logs the missing parts until the controller is ready.
func reportReady(ctx context.Context, ready func() error, log *slog.Logger) error {
	began := time.Now()
	poll, say := time.NewTicker(20*time.Millisecond), time.NewTicker(2*time.Second)
	defer poll.Stop()
	defer say.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-poll.C:
			if ready() == nil {
				log.Info("ready", "after", time.Since(began).Round(time.Millisecond))
				<-ctx.Done()
				return nil
			}
		case <-say.C:
			say.Reset(10 * time.Second)
			log.Warn("not ready: is the API server up, are the CRDs installed, may the controller list them?", "reason",
				ready())
		}
	}
}
