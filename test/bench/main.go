// bench measures bcsnet against two floors in the same run, on a real control plane: a bare client that
// does the same write, and an empty HTTP handler that forwards to that write. It rewrites the tables
// of docs/benchmarks.md.
package main

import (
	"context"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/bcsnet/bcsnet/test/controlplane"
)

func main() {
	var o settings
	flag.DurationVar(&o.slice, "slice", 3*time.Second, "how long one measurement lasts")
	flag.IntVar(&o.rounds, "rounds", 3, "how often each measurement is taken; the median counts")
	flag.IntVar(&o.large, "large", 65536, "addresses of the largest pool")
	flag.StringVar(&o.out, "out", "", "file whose tables are rewritten; default docs/benchmarks.md of this module")
	flag.StringVar(&o.only, "only", "", "measure only this part: floors, requests, pools, start or first")
	handler := flag.String("floor-handler", "", "internal: serve the empty handler with this kubeconfig")
	next := flag.String("floor-next", "10.192.0.0", "internal: the first address that the empty handler makes an object of")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	err := run(ctx, o, *handler, *next)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// settings are the flags.
type settings struct {
	slice  time.Duration
	rounds int
	large  int
	out    string
	only   string
}

func (o settings) wants(part string) bool { return o.only == "" || o.only == part }

func run(ctx context.Context, o settings, handler, next string) error {
	if handler != "" {
		first, err := netip.ParseAddr(next)
		if err != nil {
			return err
		}
		return serveFloor(ctx, handler, first)
	}
	if o.out == "" {
		root, err := controlplane.ModuleRoot()
		if err != nil {
			return err
		}
		o.out = filepath.Join(root, "docs", "benchmarks.md")
	}
	b, err := setUp(ctx, o)
	if err != nil {
		return err
	}
	defer b.close()
	for _, part := range []struct {
		name string
		run  func(context.Context) error
	}{{"floors", b.floors}, {"requests", b.requests}, {"pools", b.pools}, {"start", b.starts}, {"first", b.first}} {
		if !o.wants(part.name) {
			continue
		}
		if err := part.run(ctx); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
	}
	return b.report.write(o.out)
}
