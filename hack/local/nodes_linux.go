package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strings"

	"k8s.io/client-go/rest"

	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/node/bed"
)

// runNode does the work of a node where this program was started for that.
func runNode() { bed.RunNode() }

// inFabric prepares a call of this program in the network that nodes are on, with files from descriptor 3 on.
func inFabric(args []string, files []*os.File) (*exec.Cmd, error) {
	if err := bed.Available(); err != nil {
		return nil, err
	}
	cmd, err := bed.Command(args...)
	if err == nil {
		bed.Pass(cmd, files...)
	}
	return cmd, err
}

// bringUpNodes does what bringUp does, with real nodes.
func bringUpNodes(ctx context.Context, o options, report func(string)) (_ *cluster, err error) {
	report("control plane: 1 of 3, 10 s")
	b, err := bed.Prepare()
	if err != nil {
		return nil, err
	}
	c := &cluster{stop: func() error { return stopNodes(b) }}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.stop())
		}
	}()
	if err := b.Start(ctx, controlplane.WithLogDir(o.file("logs"))); err != nil {
		return nil, err
	}
	report("bcsnet: 2 of 3, 3 s")
	if err := b.Cluster.InstallManifests(ctx); err != nil {
		return nil, err
	}
	replica := netip.AddrPortFrom(b.Gateway4(), bed.AllocatorPort)
	c.controller, err = b.Cluster.StartController(ctx, controlplane.ControllerOptions{
		Binary: o.controller, HTTPAddress: replica.String(),
	})
	if err != nil {
		return nil, err
	}
	// As users install it: nodes are Ready by what the DaemonSet gives them.
	if err := errors.Join(b.Publish(ctx, replica), b.ApplyNodes(ctx, "node")); err != nil {
		return nil, err
	}
	report(fmt.Sprintf("nodes: 3 of 3, %d s", 5*o.nodes))
	err = b.Up(ctx, bed.Setup{
		Nodes: o.nodes, Images: []string{bed.NodeImage}, Prepare: func(*bed.Node) error { return nil },
	})
	if err != nil {
		return nil, err
	}
	if err := serveControl(ctx, o, b); err != nil {
		return nil, err
	}
	return c, publishNodes(o, b, c.controller)
}

func stopNodes(b *bed.Bed) error {
	err := b.Down()
	if b.Cluster != nil {
		err = errors.Join(err, b.Cluster.Stop())
	}
	return errors.Join(err, b.Close())
}

// publishNodes makes everything reachable from this machine's loopback, and publishes where it is there.
func publishNodes(o options, b *bed.Bed, c *controlplane.Controller) error {
	s := state{}
	for _, n := range b.Nodes() {
		s.Nodes = append(s.Nodes, n.Name)
	}
	for _, u := range []struct {
		inside  string
		outside *string
	}{
		{b.Cluster.Config.Host, &s.APIServer}, {c.URL, &s.URL}, {c.MetricsURL, &s.Metrics}, {c.HealthURL, &s.Health},
	} {
		scheme, address, _ := strings.Cut(u.inside, "://")
		forwarded, err := b.Forward(address)
		if err != nil {
			return err
		}
		*u.outside = scheme + "://" + forwarded
	}
	admin := rest.CopyConfig(b.Cluster.Config)
	admin.Host = s.APIServer
	if err := controlplane.WriteKubeconfigFor(admin, o.file("kubeconfig")); err != nil {
		return err
	}
	return o.publish(s)
}
