package node

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/bcsnet/bcsnet/pkg/serving/port"
	"github.com/bcsnet/bcsnet/pkg/serving/scrape"
)

// lastPause is the longest pause before a failed step is repeated.
const lastPause = 15 * time.Second

// Run installs the plugins and maintains the node until the context ends. It leaves everything in place: the plugins
// work without a pod, and the next pod continues the work.
func Run(ctx context.Context, o Options) error {
	o.Every.fill()
	log := o.logger()
	cfg, err := restConfig(o)
	if err != nil {
		return err
	}
	clients, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return err
	}
	age := &tokens{options: o}
	a := &agent{options: o, log: log, source: newSource(o, clients, log), metrics: newMetrics(o, age)}
	a.state.Store(errors.New("nothing is installed yet"))
	h := newHealth(o, a.state.Load, clients, a.metrics, age, log)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return a.source.run(ctx) })
	group.Go(func() error { return a.run(ctx) })
	group.Go(func() error { return h.run(ctx) })
	group.Go(func() error { return a.metrics.run(ctx) })
	group.Go(func() error { return serve(ctx, o, a.ready, a.metrics.registry, log) })
	err = group.Wait()
	log.Info("bcsnet-node ends; what it installed stays")
	return err
}

// restConfig returns the configuration of the API server's client.
func restConfig(o Options) (*rest.Config, error) {
	cfg, err := rest.InClusterConfig()
	if o.Kubeconfig != "" {
		cfg, err = clientcmd.BuildConfigFromFlags("", o.Kubeconfig)
	}
	if err != nil {
		return nil, fmt.Errorf("find the API server: %w; hint: --kubeconfig, if this is not a pod", err)
	}
	cfg.UserAgent = "bcsnet-node"
	return cfg, nil
}

// outcome is the outcome of the last installation.
type outcome struct {
	mu  sync.Mutex
	err error
}

func (s *outcome) Store(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

func (s *outcome) Load() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// agent runs an installation whenever something has changed.
type agent struct {
	options Options
	log     *slog.Logger
	source  *source
	metrics *metrics
	state   outcome
}

// run installs at once, after changes of the cluster or a mounted file, after failures, and every half minute, because
// somebody may have changed the node.
func (a *agent) run(ctx context.Context) error {
	ask := &asker{configDir: a.options.ConfigDir, now: a.options.Now}
	i := &installer{options: a.options, log: a.log, ask: func(ctx context.Context) error { return ask.ask(ctx, "") },
		failed: a.metrics.failed, said: map[string]bool{}}
	compare := time.NewTicker(a.options.Every.Compare)
	defer compare.Stop()
	var digest [sha256.Size]byte
	var from time.Time // the next time, whatever happens
	pause := time.Duration(0)
	for changed := true; ctx.Err() == nil; {
		now := mounted(a.options)
		if changed || now != digest || !a.options.Now().Before(from) {
			digest = now
			err := i.install(ctx, a.source.facts())
			a.say(ctx, err)
			pause = min(max(2*pause, a.options.Every.Compare), lastPause)
			if err == nil {
				pause = 0
			}
			from = a.options.Now().Add(a.options.Every.Repair)
			if err != nil {
				from = a.options.Now().Add(pause)
			}
		}
		select {
		case <-ctx.Done():
		case <-a.source.changed:
			changed = true
			continue
		case <-compare.C:
		}
		changed = false
	}
	return nil
}

// say stores the outcome of an installation, and logs what is new in it.
func (a *agent) say(ctx context.Context, err error) {
	last := a.state.Load()
	a.state.Store(err)
	a.metrics.installed(err == nil)
	switch {
	case ctx.Err() != nil:
	case err == nil && last != nil:
		a.log.Info("the node is in order")
	case err != nil && (last == nil || last.Error() != err.Error()):
		a.log.Error("the node is not in order; it is tried again", "error", err)
	}
}

// ready returns the reason why the node is not in order; nil if it is.
func (a *agent) ready() error { return a.state.Load() }

// mounted returns a digest of the files to copy from the pod's mounts.
func mounted(o Options) (sum [sha256.Size]byte) {
	h := sha256.New()
	for _, path := range []string{o.CAFile, o.TokenFile, o.ConflistFile} {
		text, err := os.ReadFile(path)
		if err != nil {
			text = []byte(err.Error()) // the copy reports the error
		}
		h.Write(append(text, 0))
	}
	return [sha256.Size]byte(h.Sum(nil))
}

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
