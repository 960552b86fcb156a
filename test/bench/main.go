// bench measures bcsnet against three floors in the same run, on a real control plane: a bare client that
// does the same write, an empty HTTP handler that forwards to that write, and the same handler with a plain
// informer on the objects. It rewrites the tables of docs/benchmarks.md.
package main

import (
	"context"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/bcsnet/bcsnet/test/controlplane"
)

func main() {
	var o settings
	flag.DurationVar(&o.slice, "slice", 3*time.Second, "how long one measurement lasts")
	flag.IntVar(&o.rounds, "rounds", 3, "how often each measurement is taken; the median counts")
	flag.IntVar(&o.large, "large", 65536, "addresses of the largest pool")
	flag.IntVar(&o.leases, "leases", 200_000, "leases of the pool of 1048576 addresses")
	flag.StringVar(&o.out, "out", "", "file whose tables are rewritten; default docs/benchmarks.md of this module")
	flag.StringVar(&o.only, "only", "", "measure only this part: floors, requests, sticky, pools, start, first, builds, large, overload or cli")
	flag.DurationVar(&o.excess, "excess", time.Minute, "how long the part overload offers more than can be stored")
	flag.StringVar(&o.beside, "beside", "", "another build of the controller to measure beside this one")
	handler := flag.String("floor-handler", "", "internal: serve the empty handler with this kubeconfig")
	next := flag.String("floor-next", "10.192.0.0", "internal: the first address that the empty handler makes an object of")
	informer := flag.Bool("floor-informer", false, "internal: the empty handler keeps a cache of the objects")
	flag.Parse()
	ctrl.SetLogger(logr.Discard()) // what is measured says how it is
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	err := run(ctx, o, *handler, *next, *informer)
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
	leases int
	out    string
	only   string
	beside string
	excess time.Duration
}

func (o settings) wants(part string) bool { return o.only == "" || o.only == part }

func run(ctx context.Context, o settings, handler, next string, informer bool) error {
	if handler != "" {
		first, err := netip.ParseAddr(next)
		if err != nil {
			return err
		}
		return serveFloor(ctx, handlerOptions{kubeconfig: handler, next: first, informer: informer})
	}
	if o.out == "" {
		root, err := controlplane.ModuleRoot()
		if err != nil {
			return err
		}
		o.out = filepath.Join(root, "docs", "benchmarks.md")
	}
	var r report
	if err := measure(ctx, o, &r, []part{
		{"floors", (*bench).floors}, {"requests", (*bench).requests}, {"sticky", (*bench).sticky}, {"pools", (*bench).pools}, {"start", (*bench).starts}, {"first", (*bench).first}, {"builds", (*bench).builds},
	}); err != nil {
		return err
	}
	for _, p := range []part{{"large", (*bench).largest}, {"overload", (*bench).overload}, {"cli", (*bench).cli}} { // nothing but its own objects is there
		if err := measure(ctx, o, &r, []part{p}); err != nil {
			return err
		}
	}
	return r.write(o.out)
}

// part is what can be measured alone.
type part struct {
	name string
	run  func(*bench, context.Context) error
}

// measure runs the parts that are wanted on a control plane of their own.
func measure(ctx context.Context, o settings, r *report, parts []part) error {
	parts = slices.DeleteFunc(parts, func(p part) bool { return !o.wants(p.name) })
	if len(parts) == 0 {
		return nil
	}
	b, err := setUp(ctx, o, r)
	if err != nil {
		return err
	}
	defer b.close()
	for _, p := range parts {
		if err := p.run(b, ctx); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return nil
}
