package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"

	"github.com/bcsnet/bcsnet/pkg/cni/netconf"
)

// maxCopied bounds a file that is copied to the node, in octets: the plugins have 8 MiB.
const maxCopied = 64 << 20

// Steps of an installation, in their order.
const (
	stepWithdraw = "withdraw"
	stepPrograms = "programs"
	stepCA       = "ca"
	stepToken    = "token"
	stepConfig   = "config"
	stepAnswer   = "answer"
	stepNote     = "note"
	stepConflist = "conflist"
	stepEarlier  = "earlier"
)

// Steps returns the steps of an installation, in order.
func Steps() []string {
	return []string{
		stepWithdraw, stepPrograms, stepCA, stepToken, stepConfig, stepAnswer, stepNote, stepConflist, stepEarlier,
	}
}

// installer brings the node's files in order.
type installer struct {
	options Options
	log     *slog.Logger
	// ask returns an error unless a replica answers as a plugin would ask it.
	ask func(context.Context) error
	// failed is called with the step of each error.
	failed func(step string)
	// said are the warnings that the log has already.
	said map[string]bool
}

// install does what is left to do, in an order in which an ADD of any moment is done by what belongs together: the
// conflist, by which the node becomes Ready, comes last. One step that fails holds the conflist back and nothing else:
// the plugins need a fresh token also on a disk that is full of other things.
func (i *installer) install(ctx context.Context, f facts) error {
	unlock, now, err := i.begin()
	if err != nil {
		i.failed(stepConfig)
		return err
	}
	defer unlock()
	var errs []error
	for _, s := range []struct {
		name string
		do   func() error
	}{
		{stepWithdraw, func() error { return i.withdraw(f, now) }},
		{stepPrograms, i.programs},
		{stepCA, func() error { return i.ca(f) }},
		{stepToken, func() error { return i.copyFile(i.options.TokenFile, tokenFile) }},
		{stepConfig, func() error { return i.config(f, now) }},
	} {
		if err := s.do(); err != nil {
			i.failed(s.name)
			errs = append(errs, err)
		}
		i.options.reached(s.name)
	}
	if len(errs) == 0 {
		errs = append(errs, i.conflist(ctx))
	}
	return errors.Join(errs...)
}

// begin makes the directories of the plugins, and returns what the node has of an earlier installation. Nobody else
// installs until unlock is called.
func (i *installer) begin() (unlock func(), now netconf.Node, err error) {
	if err := errors.Join(makeDir(i.options.ConfigDir), makeDir(i.options.DataDir)); err != nil {
		return nil, now, err
	}
	if unlock, err = lock(i.options.ConfigDir); err != nil {
		return nil, now, err
	}
	if now, err = readConfig(i.options.ConfigDir); err != nil {
		unlock()
		return nil, now, err
	}
	return unlock, now, nil
}

// withdraw removes the conflist where the node's files are those of another cluster: the node is NotReady until they
// are of this one.
func (i *installer) withdraw(f facts, now netconf.Node) error {
	if f.cluster == "" || now.Cluster == "" || f.cluster == now.Cluster {
		return nil
	}
	i.log.Warn("the node was one of another cluster: its conflist is withdrawn until all is that of this one",
		"was", now.Cluster, "is", f.cluster)
	written, err := i.options.written()
	if err != nil {
		return err
	}
	for _, name := range written {
		if err := removeAll(filepath.Join(i.options.NetDir, name)); err != nil {
			return err
		}
	}
	return nil
}

// programs copies the plugins. One that runs just now goes on with its own file.
func (i *installer) programs() error {
	entries, err := os.ReadDir(i.options.ProgramsDir)
	if err != nil {
		return fmt.Errorf("read the plugins: %w; hint: --programs-dir", err)
	}
	var n int
	for _, e := range entries {
		if !e.Type().IsRegular() {
			continue
		}
		n++
		content, err := readFile(filepath.Join(i.options.ProgramsDir, e.Name()))
		if err != nil {
			return fmt.Errorf("read the plugins: %w", err)
		}
		if err := i.write(file{i.options.BinDir, e.Name(), content, 0o755}); err != nil {
			return err
		}
	}
	if n == 0 {
		return fmt.Errorf("there are no plugins in %s; hint: --programs-dir", i.options.ProgramsDir)
	}
	return nil
}

// copyFile copies a file that is mounted into the pod to the plugins' directory.
func (i *installer) copyFile(from, name string) error {
	if from == "" {
		return nil
	}
	content, err := readFile(from)
	if err == nil && len(content) == 0 {
		err = errors.New("it is empty")
	}
	if err != nil {
		return fmt.Errorf("read what %s is copied from: %s: %w; the node keeps the one that it has", name, from, err)
	}
	return i.write(file{i.options.ConfigDir, name, content, 0o600})
}

// ca gives the node the CA of the file or of the ConfigMap. Where the cluster has not said it, or there is no such
// ConfigMap any more, the node keeps the one that it has.
func (i *installer) ca(f facts) error {
	switch {
	case i.options.CAConfigMap == "":
		return i.copyFile(i.options.CAFile, caFile)
	case f.ca != "":
		return i.write(file{i.options.ConfigDir, caFile, []byte(f.ca), 0o600})
	case i.options.has(caFile):
		return nil
	}
	return fmt.Errorf("the CA of the allocator is %w: there is no ConfigMap %s with %s; hint: the controller writes "+
		"it when it starts: see whether pods of bcsnet-controller run", errFacts, i.options.CAConfigMap, caFile)
}

// config writes config.json. It sends the plugins to replicas over https only where they have what that takes: until
// then those of an earlier installation over plain HTTP stay.
func (i *installer) config(f facts, now netconf.Node) error {
	content, err := newConfig(i.options, f, now)
	if err != nil {
		return err
	}
	for name, wanted := range map[string]bool{caFile: i.options.secure(), tokenFile: i.options.TokenFile != ""} {
		if wanted && !i.options.has(name) {
			return fmt.Errorf("%s is not written before the node has %s", configFile, name)
		}
	}
	return i.write(file{i.options.ConfigDir, configFile, content, 0o600})
}

// write writes a file and says so.
func (i *installer) write(f file) error {
	wrote, err := f.write()
	if err != nil {
		return fmt.Errorf("write %s: %w", f.path(), err)
	}
	if wrote {
		i.log.Info("installed", "file", f.path(), "octets", len(f.content))
	}
	return nil
}

// installed reports whether all that the node needs for an ADD is there, in whichever version.
func (o *Options) installed() bool {
	paths := []string{filepath.Join(o.ConfigDir, configFile)}
	if o.secure() {
		paths = append(paths, filepath.Join(o.ConfigDir, caFile))
	}
	if o.TokenFile != "" {
		paths = append(paths, filepath.Join(o.ConfigDir, tokenFile))
	}
	if o.ConflistFile != "" {
		paths = append(paths, filepath.Join(o.NetDir, o.ConflistName))
	}
	return !slices.ContainsFunc(paths, func(path string) bool {
		_, err := os.Stat(path)
		return err != nil
	})
}

// has reports whether the node has a file of the plugins' configuration.
func (o *Options) has(name string) bool {
	_, err := os.Stat(filepath.Join(o.ConfigDir, name))
	return err == nil
}

// readFile returns the content of a file that is not larger than what is copied.
func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Size() > maxCopied {
		return nil, fmt.Errorf("%s has more than %d octets", path, maxCopied)
	}
	return os.ReadFile(path)
}
