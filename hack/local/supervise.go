package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"syscall"
	"time"

	"github.com/bcsnet/bcsnet/test/controlplane"
)

// superviseVerb is for up only: it needs the two files below.
const superviseVerb = "supervise"

const (
	// lockFD stays open here and is inherited by every child on purpose, see lock.
	lockFD = 3
	// reportFD takes one message, ready or an error, for the up that waits for it.
	reportFD = 4
)

// restartDelay keeps a controller that cannot start from filling the disk with logs.
const restartDelay = 2 * time.Second

func supervise(ctx context.Context, o options) error {
	var stat syscall.Stat_t
	if syscall.Fstat(lockFD, &stat) != nil || syscall.Fstat(reportFD, &stat) != nil {
		return errors.New("supervise is started by up")
	}
	syscall.CloseOnExec(reportFD)
	report := os.NewFile(reportFD, "report")

	claim, err := o.claim()
	if err != nil {
		return err
	}
	defer claim.Close()
	cluster, err := bringUp(ctx, o, func(text string) { fmt.Fprintln(report, progress+text) })
	if err != nil {
		slog.Error("start", "err", err)
		_, reportErr := report.WriteString(err.Error())
		return errors.Join(err, reportErr)
	}
	// When the up that waited is gone by now, nobody reads this; we are up all the same.
	_, _ = report.WriteString(ready)
	_ = report.Close()
	slog.Info("up")

	if cluster.controller != nil {
		keepRunning(ctx, cluster.controller)
	}
	<-ctx.Done()
	slog.Info("stopping")
	err = errors.Join(cluster.stop(), o.unpublish())
	slog.Info("down", "err", err)
	return err
}

// cluster has the running controller, and stops everything.
type cluster struct {
	controller *controlplane.Controller // nil without one
	stop       func() error
}

// bringUp starts all parts in order and publishes where they are. It reports each part before it starts it.
func bringUp(ctx context.Context, o options, report func(string)) (*cluster, error) {
	if o.nodes > 0 {
		return bringUpNodes(ctx, o, report)
	}
	cp, err := controlplane.Start(ctx,
		controlplane.WithDataDir(o.file("data")), controlplane.WithLogDir(o.file("logs")),
		controlplane.WithControllerManager(), controlplane.WithScheduler(), controlplane.WithKwok())
	if err != nil {
		return nil, err
	}
	controller, err := install(ctx, o, cp)
	if err != nil {
		return nil, errors.Join(err, cp.Stop())
	}
	return &cluster{controller, cp.Stop}, nil
}

func install(ctx context.Context, o options, cp *controlplane.ControlPlane) (*controlplane.Controller, error) {
	if err := cp.InstallManifests(ctx); err != nil {
		return nil, err
	}
	if err := cp.WriteKubeconfig(o.file("kubeconfig")); err != nil {
		return nil, err
	}
	s := state{APIServer: cp.Config.Host}
	var controller *controlplane.Controller
	if !o.noController {
		var err error
		controller, err = cp.StartController(ctx, controlplane.ControllerOptions{Binary: o.controller})
		if err != nil {
			return nil, err
		}
		s.URL, s.Metrics, s.Health = controller.URL, controller.MetricsURL, controller.HealthURL
	}
	return controller, o.publish(s)
}

// keepRunning starts the controller again whenever it ends, as a kubelet would.
func keepRunning(ctx context.Context, controller *controlplane.Controller) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-controller.Done():
		}
		slog.Warn("the controller ended and is started again", "log", controller.LogFile)
		select {
		case <-ctx.Done():
			return
		case <-time.After(restartDelay):
		}
		if err := controller.Start(ctx); err != nil {
			slog.Error("start the controller", "err", err)
		}
	}
}
