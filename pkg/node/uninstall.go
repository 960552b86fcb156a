package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"

	"github.com/bcsnet/bcsnet/pkg/cni/attach"
	"github.com/bcsnet/bcsnet/pkg/cni/undelivered"
)

// stayPause is the pause between the tries of a pod that stays.
const stayPause = 10 * time.Second

// Uninstall removes what Run installs, if no pod has an address through it: first the conflist, so that no new pod
// starts with it, then the rest. With Options.Stay, it retries until it succeeds, then reports ready, and waits for the
// end of the context.
func Uninstall(ctx context.Context, o Options) error {
	log := o.logger()
	if !o.Stay {
		return uninstall(ctx, o, log)
	}
	var state outcome
	state.Store(errors.New("nothing is removed yet"))
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return serve(ctx, o, state.Load, prometheus.NewRegistry(), log) })
	group.Go(func() error {
		for state.Load() != nil && ctx.Err() == nil {
			err := uninstall(ctx, o, log)
			state.Store(err)
			if err == nil {
				break
			}
			log.Warn("the plugins are not removed yet", "error", err)
			select {
			case <-ctx.Done():
			case <-time.After(stayPause):
			}
		}
		<-ctx.Done()
		return nil
	})
	return group.Wait()
}

func uninstall(ctx context.Context, o Options, log *slog.Logger) error {
	if err := o.removeFiles(ctx, log); err != nil {
		return err
	}
	if err := o.removeCondition(ctx); err != nil {
		return err
	}
	log.Info("the plugins are removed from the node", "node", o.Node)
	return nil
}

// removeFiles removes the installed files, and reports the undelivered releases that stay.
func (o *Options) removeFiles(ctx context.Context, log *slog.Logger) error {
	if err := o.renewToken(); err != nil {
		log.Warn("the plugins go on with the token that they have", "error", err)
	}
	if err := o.withdrawAll(); err != nil {
		return err
	}
	o.reached(stepConflist)
	if err := o.unnamed(); err != nil {
		return err
	}
	if err := deliver(ctx, *o, log); err != nil {
		log.Warn("undelivered releases stay", "error", err)
	}
	if n, err := undelivered.In(o.DataDir).Len(); err != nil || n > 0 {
		log.Warn("releases stay undelivered, and the garbage collection of the controller frees their addresses",
			"count", n, "dir", undelivered.In(o.DataDir).Dir, "error", err)
	}
	return o.remove()
}

// renewToken gives the plugins the token of this pod: the installing pod's token became invalid with that pod.
func (o *Options) renewToken() error {
	if o.TokenFile == "" || !o.has(tokenFile) {
		return nil
	}
	content, err := readFile(o.TokenFile)
	if err != nil {
		return err
	}
	_, err = file{o.ConfigDir, tokenFile, content, 0o600}.write()
	return err
}

// withdrawAll removes the conflists that pods of bcsnet-node wrote.
func (o *Options) withdrawAll() error {
	written, err := o.written()
	if err != nil {
		return err
	}
	for _, name := range written {
		if err := o.withdraw(name, o.unattached); err != nil {
			return err
		}
	}
	return o.unattached()
}

// withdraw removes a conflist, unless attached reports pods with addresses through it. A container runtime cannot end a
// pod without its conflist, and with another one it would call other plugins than at the start.
func (o *Options) withdraw(name string, attached func() error) error {
	path := filepath.Join(o.NetDir, name)
	aside := filepath.Join(o.NetDir, "."+name+".withdrawn")
	if err := attached(); err != nil {
		return err
	}
	if err := os.Rename(path, aside); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("withdraw the conflist: %w", err)
	}
	if err := attached(); err != nil { // a pod has started meanwhile
		if back := os.Rename(aside, path); !errors.Is(back, fs.ErrNotExist) {
			err = errors.Join(err, back)
		}
		return err
	}
	if err := removeAll(aside); err != nil {
		return fmt.Errorf("withdraw the conflist: %w", err)
	}
	return nil
}

// attachedBy returns a function that reports whether pods have addresses through the network of a conflist.
func (o *Options) attachedBy(name string) func() error {
	text, err := readFile(filepath.Join(o.NetDir, name))
	var conf struct {
		Name string `json:"name"`
	}
	if err != nil || json.Unmarshal(text, &conf) != nil {
		return func() error { return nil } // no pod starts or ends with it
	}
	return func() error {
		n, err := o.attachments().LenOf(conf.Name)
		if err == nil && n > 0 {
			err = fmt.Errorf("%d interfaces of pods on %s have addresses by it; hint: kubectl drain %s", n, o.Node,
				o.Node)
		}
		return err
	}
}

func (o *Options) attachments() attach.Dir { return attach.In(o.RunDir) }

// unattached returns an error while pods of the node have addresses from the plugins.
func (o *Options) unattached() error {
	n, err := o.attachments().Len()
	if err != nil {
		return fmt.Errorf("count the attachments: %w", err)
	}
	if n > 0 && !o.Force {
		return fmt.Errorf("the plugins stay: %d interfaces of pods on %s have addresses by them, and end by them; "+
			"hint: kubectl drain %s, or delete these pods; --force removes the plugins anyway", n, o.Node, o.Node)
	}
	return nil
}

// unnamed returns an error while a network configuration that bcsnet did not write names the plugins: without them, no
// pod with it could start.
func (o *Options) unnamed() error {
	all, err := o.foreigners()
	if err != nil || len(all) == 0 || o.Force {
		return err
	}
	return fmt.Errorf("the plugins stay: %s, which bcsnet did not write, names them; hint: remove that file, or what "+
		"it says of bcsnet-ipam and bcsnet-announce; --force removes the plugins anyway", filepath.Join(o.NetDir,
		all[0].name))
}

// remove removes the configuration and the plugins.
func (o *Options) remove() error {
	for _, name := range []string{configFile, caFile, tokenFile, writtenFile} {
		if err := removeAll(filepath.Join(o.ConfigDir, name), filepath.Join(o.ConfigDir, "."+name+".new")); err != nil {
			return fmt.Errorf("remove the configuration: %w", err)
		}
	}
	o.reached(stepConfig)
	entries, err := os.ReadDir(o.ProgramsDir)
	if err != nil {
		return fmt.Errorf("read the names of the plugins: %w; hint: --programs-dir", err)
	}
	for _, e := range entries {
		path := filepath.Join(o.BinDir, e.Name())
		if err := removeAll(path, filepath.Join(o.BinDir, "."+e.Name()+".new")); err != nil {
			return fmt.Errorf("remove the plugins: %w", err)
		}
	}
	o.reached(stepPrograms)
	return nil
}

func (o *Options) removeCondition(ctx context.Context) error {
	cfg, err := restConfig(*o)
	if err != nil {
		return err
	}
	clients, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return err
	}
	ctx, stop := context.WithTimeout(ctx, writeTime)
	defer stop()
	if err := removeCondition(ctx, clients, o.Node); !apierrors.IsNotFound(err) {
		return err
	}
	return nil // the Node no longer exists
}
