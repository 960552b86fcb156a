package controller

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/bcsnet/bcsnet/pkg/allocator"
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

// NewCommand returns the command line of bcsnet-controller.
func NewCommand(version string) *cobra.Command {
	o := Options{Version: version, PodIP: os.Getenv(PodIPEnv)}
	c := &cobra.Command{
		Use:   "bcsnet-controller",
		Short: "Keep BCSNetPool and BCSNetIP objects and answer CNI plugins over HTTP",
		Long: `bcsnet-controller watches BCSNetPool objects, keeps one BCSNetIP object per address, and serves the
allocator HTTP API that CNI plugins call. Every flag can also be set in the environment: --log-level is
BCSNET_LOG_LEVEL.`,
		Example: `  # against the cluster of the current kubeconfig, without a leader election
  bcsnet-controller --leader-elect=false`,
		Version: version, Args: cobra.NoArgs, SilenceUsage: true, SilenceErrors: true,
		PreRunE: func(c *cobra.Command, _ []string) error {
			if err := SetFromEnv(c.Flags(), os.LookupEnv); err != nil {
				return err
			}
			return o.Validate()
		},
		RunE: func(c *cobra.Command, _ []string) error {
			log := logr.FromSlogHandler(o.Logger().Handler())
			for _, name := range UnknownEnv(c.Flags(), os.Environ()) {
				o.Logger().Warn("no flag has the name of a variable of the environment", "variable", name, "hint",
					"bcsnet-controller --help")
			}
			ctrl.SetLogger(log)
			klog.SetLogger(log)
			return Run(c.Context(), o)
		},
	}
	o.AddFlags(c.Flags())
	return c
}

// drainTime bounds the time for finishing requests in progress after the controller was asked to end. It is the longest
// time that a request can take, including its last write.
const drainTime = allocator.MaxRequestTime + store.WriteTimeout

// startAndDrain runs the manager until the context ends. Leadership is given up first, so that another replica leads
// while this one finishes. Then the allocator's server ends, with the requests in progress. The manager itself would
// stop the feed before the server, but a request waits for the feed to deliver its writes.
func startAndDrain(
	ctx context.Context, mgr ctrl.Manager, server *http.Server, elect func(context.Context), log *slog.Logger,
) error {
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	candidate, resign := context.WithCancel(ctx)
	defer resign()
	var beside sync.WaitGroup
	beside.Go(func() { elect(candidate) })
	beside.Go(func() {
		select {
		case <-running.Done(): // the manager ended without being asked
			return
		case <-ctx.Done():
		}
		defer stop()
		log.Info("ending: no new requests, those under way are finished")
		limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTime)
		defer cancel()
		if err := server.Shutdown(limit); err != nil {
			log.Warn("requests were cut off", "after", drainTime, "error", err)
		}
	})
	err := mgr.Start(running)
	stop()
	resign()
	beside.Wait()
	if err != nil && ctx.Err() != nil { // errors after the request to end do not matter
		log.Warn("something did not end in order", "error", err)
		err = nil
	}
	return err
}
