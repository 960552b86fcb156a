// demo is the tour of bcsnet on a real control plane: a pool becomes addresses, requests as CNI plugins
// send them become leases, and every way of giving an address back is shown. It checks what each step
// shows and leaves nothing behind.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/bcsnet/bcsnet/test/controlplane"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	err := run(ctx, os.Stdout)
	cancel()
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "✗", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) (err error) {
	root, err := controlplane.ModuleRoot()
	if err != nil {
		return err
	}
	d := &demo{root: root, out: out}
	d.title("A control plane: etcd, kube-apiserver", "real binaries on loopback, fsync on; they end with this tour")
	began := time.Now()
	d.cp, err = controlplane.Start(ctx)
	if err != nil {
		return err
	}
	defer func() {
		if e := d.cp.Stop(); err == nil {
			err = e
		}
	}()
	d.note("up after %.1f s", time.Since(began).Seconds())
	d.title(
		"CRDs and bcsnet-controller",
		"the controller runs as its own ServiceAccount with the ClusterRole of config/rbac")
	if err := d.cp.InstallManifests(ctx); err != nil {
		return err
	}
	if d.controller, err = d.cp.StartController(ctx, controlplane.ControllerOptions{}); err != nil {
		return err
	}
	d.note("the allocator answers at %s", d.controller.URL)
	for _, step := range d.steps() {
		d.title(step.title, step.why)
		if err := step.run(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.title, err)
		}
	}
	fmt.Fprintf(d.out, "\n✔ every step came out as told, in %.0f s. Next: make up, or docs/README.md\n",
		time.Since(began).Seconds())
	return nil
}
