// bench measures bcsnet against three floors in the same run, on a real control plane: a bare client that
// does the same write, an empty HTTP handler that forwards to that write, and the same handler with a plain
// informer on the objects. It rewrites the tables of docs/benchmarks.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/node/bed"
)

func main() {
	bed.RunNode()
	var o settings
	flag.DurationVar(&o.slice, "slice", 2*time.Second, "how long one measurement lasts")
	flag.IntVar(&o.rounds, "rounds", 3, "how often each measurement is taken; the median counts")
	flag.IntVar(&o.large, "large", 65536, "addresses of the largest pool")
	flag.IntVar(&o.leases, "leases", 200_000, "leases of the pool of 1048576 addresses")
	flag.StringVar(&o.out, "out", "", "file whose tables are rewritten; default docs/benchmarks.md of this module")
	flag.StringVar(&o.only, "only", "", "measure only these parts, with commas between: "+strings.Join(partNames(),
		", "))
	flag.DurationVar(&o.excess, "excess", time.Minute, "how long the part overload offers more than can be stored")
	o.offers = []float64{0.5, 1, 2, 3}
	flag.Func("offers", "what the part overload offers, as multiples of what can be stored (default 0.5,1,2,3)",
		o.setOffers)
	flag.StringVar(&o.beside, "beside", "", "another build of the controller to measure beside this one")
	handler := flag.String("floor-handler", "", "internal: serve the empty handler with this kubeconfig")
	next := flag.String("floor-next", "10.192.0.0",
		"internal: the first address that the empty handler makes an object of")
	informer := flag.Bool("floor-informer", false, "internal: the empty handler keeps a cache of the objects")
	flag.Parse()
	ctrl.SetLogger(logr.Discard()) // what is measured says how it is
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	do := func() error { return run(ctx, o, *handler, *next, *informer) }
	switch {
	case bed.Inside():
		do = func() error { return measureNodes(ctx, o.rounds) }
	case os.Getenv(insideVariable) != "" && *handler == "": // the handler inherits the environment
		do = func() error { return measureNeighbours(ctx, o) }
	}
	if err := do(); err != nil {
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
	offers []float64
}

// setOffers reads the multiples that the part overload offers.
func (o *settings) setOffers(text string) error {
	o.offers = nil
	for n := range strings.SplitSeq(text, ",") {
		times, err := strconv.ParseFloat(n, 64)
		if err != nil || times <= 0 {
			return fmt.Errorf("%q is not a number above zero", n)
		}
		o.offers = append(o.offers, times)
	}
	return nil
}

// wants reports whether a part is to be measured.
func (o settings) wants(part string) bool {
	return o.only == "" || slices.Contains(strings.Split(o.only, ","), part)
}

// check refuses parts that there are not: a misspelt one would be left out without a word.
func (o settings) check() error {
	for name := range strings.SplitSeq(o.only, ",") {
		if o.only != "" && !slices.Contains(partNames(), name) {
			return fmt.Errorf("-only %s: there is no part %q, but %s", o.only, name, strings.Join(partNames(), ", "))
		}
	}
	return nil
}

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
	if err := o.check(); err != nil {
		return err
	}
	if _, err := os.Stat(o.out); err != nil {
		return fmt.Errorf("-out: %w; the tables are rewritten in a copy of docs/benchmarks.md: make one there first",
			err)
	}
	var r report
	for _, parts := range together() {
		if err := errors.Join(measure(ctx, o, &r, parts), r.write(o.out)); err != nil { // what comes later may fail
			return err
		}
	}
	if o.wants(neighboursPart) {
		if err := errors.Join(neighbours(ctx, &r), r.write(o.out)); err != nil {
			return err
		}
	}
	if !o.wants(nodesPart) {
		return nil
	}
	return errors.Join(nodes(ctx, &r), r.write(o.out))
}

// part is what can be measured alone.
type part struct {
	name string
	run  func(*bench, context.Context) error
}

// together lists all parts but neighboursPart and nodesPart, those that share a control plane side by side. The largest
// pool, the overload, the policies, HTTPS, the plugin and the import each have a control plane with nothing but their
// own objects; the command line and the pages share one.
func together() [][]part {
	return [][]part{
		{
			{"floors", (*bench).floors}, {"requests", (*bench).requests}, {"sticky", (*bench).sticky}, {"pools",
				(*bench).pools},
			{"start", (*bench).starts}, {"first", (*bench).first}, {"builds", (*bench).builds},
		},
		{{"large", (*bench).largest}},
		{{"blocks", (*bench).blocks}},
		{{"overload", (*bench).overload}},
		{{"policies", (*bench).policies}},
		{{"tls", (*bench).secure}},
		{{"cni", (*bench).cni}},
		{{"import", (*bench).imports}},
		{{"cli", (*bench).cli}, {"pages", (*bench).pages}},
	}
}

func partNames() (names []string) {
	for _, p := range slices.Concat(together()...) {
		names = append(names, p.name)
	}
	return append(names, neighboursPart, nodesPart)
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
