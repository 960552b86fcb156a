package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"

	"github.com/bcsnet/bcsnet/pkg/cni/attach"
	"github.com/bcsnet/bcsnet/pkg/cni/undelivered"
)

// stayPause is how long a pod that stays waits before it tries again.
const stayPause = 10 * time.Second

// Uninstall removes what Run installs: the conflist first, so that no pod begins by it, then the rest, once no pod has
// an address by it. With Options.Stay it tries until that is so, and then waits for the end of the context.
func Uninstall(ctx context.Context, o Options) error {
	log := o.logger()
	for {
		err := uninstall(ctx, o, log)
		if err == nil {
			log.Info("the plugins are removed from the node", "node", o.Node)
		}
		if !o.Stay {
			return err
		}
		if err == nil {
			<-ctx.Done()
			return nil
		}
		log.Warn("the plugins are not removed yet", "error", err)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(stayPause):
		}
	}
}

func uninstall(ctx context.Context, o Options, log *slog.Logger) error {
	if err := removeAll(filepath.Join(o.NetDir, o.ConflistName)); err != nil {
		return fmt.Errorf("withdraw the conflist: %w", err)
	}
	o.reached(stepConflist)
	attached, err := attach.Dir(filepath.Join(o.RunDir, "attach")).Len()
	if err != nil {
		return fmt.Errorf("count the attachments: %w", err)
	}
	if attached > 0 && !o.Force {
		return fmt.Errorf("the conflist is withdrawn, and the plugins stay: %d interfaces of pods on %s have addresses by "+
			"them, and end by them; hint: kubectl drain %s, or delete these pods; --force removes the plugins anyway",
			attached, o.Node, o.Node)
	}
	if err := deliver(ctx, o, log); err != nil {
		log.Warn("undelivered releases stay", "error", err)
	}
	if n, err := undelivered.In(o.DataDir).Len(); err != nil || n > 0 {
		log.Warn("releases stay undelivered, and the garbage collection of the controller frees their addresses",
			"count", n, "dir", undelivered.In(o.DataDir), "error", err)
	}
	unlock, err := lock(o.ConfigDir)
	if err == nil {
		defer unlock()
		err = o.remove()
	} else if errors.Is(err, fs.ErrNotExist) {
		err = o.remove()
	}
	if err != nil {
		return err
	}
	return o.removeCondition(ctx)
}

// remove removes configuration and plugins.
func (o *Options) remove() error {
	for _, name := range []string{configFile, caFile, tokenFile} {
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

// removeCondition takes the condition from the Node.
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
	return nil // there is no such Node any more
}
