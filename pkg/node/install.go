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

// maxCopied bounds a file that is copied to the node, in octets: the plugins take 8 MiB.
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

// installer creates and repairs the node's files.
type installer struct {
	options Options
	log     *slog.Logger
	// ask returns an error unless a replica answers a request in the manner of a plugin.
	ask func(context.Context) error
	// failed is called with the name of each step that fails.
	failed func(step string)
	// said are the warnings that were already logged.
	said map[string]bool
}

// install does the remaining steps. Their order ensures that an ADD at any moment finds files that fit together: the
// conflist, which makes the node Ready, comes last. A failed step delays only the conflist, not the other steps: the
// plugins need a fresh token even if the disk is full.
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

// begin creates the plugins' directories, and returns the configuration of an earlier installation. No other process
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

// withdraw removes the conflist if the node's files belong to another cluster: the node is NotReady until they belong
// to this one.
func (i *installer) withdraw(f facts, now netconf.Node) error {
	if f.cluster == "" || now.Cluster == "" || f.cluster == now.Cluster {
		return nil
	}
	i.log.Warn(
		"the node belonged to another cluster: its conflist is withdrawn until all its files are of this cluster",
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

// programs copies the plugins. A plugin that is running continues with its own file.
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

// ca installs the CA of the file or of the ConfigMap. If the ConfigMap is not known yet or no longer exists, the node
// keeps its CA.
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

// config writes config.json. It names https replicas only if the node has the files that https needs. Until then, the
// plain HTTP replicas of an earlier installation stay.
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

// installed reports whether the node has all files that an ADD needs, in any version.
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

// has reports whether a file exists in the plugins' configuration directory.
func (o *Options) has(name string) bool {
	_, err := os.Stat(filepath.Join(o.ConfigDir, name))
	return err == nil
}

// readFile returns the content of a file, whose size must not exceed maxCopied.
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
