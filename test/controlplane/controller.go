package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
)

// ControllerName is the ServiceAccount that has the controller's rights in the manifests.
const ControllerName = "bcsnet-controller"

// ControllerOptions changes how StartController runs bcsnet-controller. The zero value suits most callers: one replica.
type ControllerOptions struct {
	// Name distinguishes replicas: it is in their logs and kubeconfigs, and in POD_NAME. Default: bcsnet-controller.
	Name string
	// Binary is the executable. Default: bin/bcsnet-controller of this module.
	Binary string
	// HTTPAddress is the listen address of the allocator. Default: a free port of 127.0.0.1.
	HTTPAddress string
	// Args are appended to the command line. The last of two equal flags counts.
	Args []string
	// Env is added to the environment, KEY=value.
	Env []string
}

// Controller is one replica of bcsnet-controller. It keeps its addresses when it is restarted.
type Controller struct {
	// URL, MetricsURL and HealthURL are the base URLs of the replica, http://ADDRESS:PORT.
	URL, MetricsURL, HealthURL string
	// Config is the identity of the replica's ServiceAccount.
	Config *rest.Config
	// LogFile is where its output goes.
	LogFile string

	process *process
}

// StartController starts a replica as the ServiceAccount bcsnet-system/bcsnet-controller, whose rights come from
// InstallManifests. It returns when /readyz answers 200. Stop of the control plane stops the replica, too.
func (cp *ControlPlane) StartController(ctx context.Context, o ControllerOptions) (*Controller, error) {
	if o.Name == "" {
		o.Name = ControllerName
	}
	if o.Binary == "" {
		root, err := ModuleRoot()
		if err != nil {
			return nil, err
		}
		o.Binary = filepath.Join(root, "bin", "bcsnet-controller")
	}
	if _, err := os.Stat(o.Binary); err != nil {
		return nil, fmt.Errorf("%w: run `make build` first", err)
	}
	cfg, err := cp.ServiceAccountConfig(ctx, SystemNamespace, ControllerName)
	if err != nil {
		return nil, err
	}
	kubeconfig := filepath.Join(cp.Dir, o.Name+".kubeconfig")
	if err := WriteKubeconfigFor(cfg, kubeconfig); err != nil {
		return nil, err
	}
	addresses, err := freeAddresses(loopback, 3)
	if err != nil {
		return nil, err
	}
	if o.HTTPAddress == "" {
		o.HTTPAddress = addresses[0].String()
	}
	metrics, health := addresses[1].String(), addresses[2].String()

	c := &Controller{
		URL:        "http://" + o.HTTPAddress,
		MetricsURL: "http://" + metrics,
		HealthURL:  "http://" + health,
		Config:     cfg,
		LogFile:    filepath.Join(cp.LogDir, o.Name+".log"),
	}
	c.process = &process{
		name: o.Name,
		path: o.Binary,
		args: append([]string{
			"--kubeconfig", kubeconfig,
			"--http-bind-address", o.HTTPAddress,
			"--metrics-bind-address", metrics,
			"--health-probe-bind-address", health,
		}, o.Args...),
		env:   append([]string{"POD_NAME=" + o.Name, "POD_NAMESPACE=" + SystemNamespace}, o.Env...),
		dir:   cp.Dir,
		log:   c.LogFile,
		grace: 15 * time.Second,
		ready: cp.answersOK(c.HealthURL + "/readyz"),
	}
	if err := c.Start(ctx); err != nil {
		return nil, err
	}
	cp.mu.Lock()
	defer cp.mu.Unlock()
	if cp.stopped {
		return nil, errors.Join(errors.New("the control plane was stopped"), c.Stop())
	}
	cp.controllers = append(cp.controllers, c)
	return c, nil
}

// Start starts an ended replica again and returns when it is ready.
func (c *Controller) Start(ctx context.Context) error { return c.process.start(ctx) }

// Stop asks the replica to end, and kills it after 15 seconds.
func (c *Controller) Stop() error { return c.process.stop() }

// Kill ends the replica like a crash.
func (c *Controller) Kill() error { return c.process.kill() }

// Pause freezes the replica, like a node without processor time: it misses events and deadlines.
func (c *Controller) Pause() error { return c.process.pause() }

// Resume continues a paused replica.
func (c *Controller) Resume() error { return c.process.signal(syscall.SIGCONT) }

// Done returns a channel that is closed when the replica's present process ends.
func (c *Controller) Done() <-chan struct{} { return c.process.done() }
