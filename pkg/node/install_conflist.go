package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/bcsnet/bcsnet/pkg/cni/netconf"
)

// conflist installs the node's conflist after a replica has answered, and then removes those that pods wrote under
// other names: the node is never without one. An existing conflist stays even if no replica answers.
func (i *installer) conflist(ctx context.Context) error {
	written, err := i.options.written()
	if err != nil {
		i.failed(stepNote)
		return err
	}
	if i.options.ConflistFile == "" {
		return i.withdrawAll(written)
	}
	content, err := readFile(i.options.ConflistFile)
	if err == nil {
		err = checkConflist(content)
	}
	if err != nil {
		i.failed(stepConflist)
		return fmt.Errorf("the conflist %s is not installed, and an earlier one stays: %w", i.options.ConflistFile, err)
	}
	i.warn(content)
	target := file{i.options.NetDir, i.options.ConflistName, content, 0o600}
	if done, err := target.inPlace(); err != nil {
		return err
	} else if !done {
		if err := i.ask(ctx); err != nil {
			i.failed(stepAnswer)
			return fmt.Errorf("the conflist is not installed before the allocator has answered: %w", err)
		}
		i.options.reached(stepAnswer)
	}
	if err := i.options.note(append(written, target.name)...); err != nil {
		i.failed(stepNote)
		return err
	}
	i.options.reached(stepNote)
	if err := i.write(target); err != nil {
		i.failed(stepConflist)
		return err
	}
	i.options.reached(stepConflist)
	if err := i.earlier(written); err != nil {
		i.failed(stepEarlier)
		return err
	}
	i.options.reached(stepEarlier)
	return nil
}

// earlier removes the conflists that pods wrote under other names than this pod's.
func (i *installer) earlier(written []string) error {
	for _, name := range written {
		path := filepath.Join(i.options.NetDir, name)
		if _, err := os.Lstat(path); name == i.options.ConflistName || errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := removeAll(path); err != nil {
			return fmt.Errorf("remove the conflist of an earlier name: %w", err)
		}
		i.log.Info("the conflist of an earlier name is removed", "file", path, "now", i.options.ConflistName)
	}
	return i.options.note(i.options.ConflistName)
}

// withdrawAll removes the conflists that pods wrote if this pod has none, for example because Multus now names the
// networks of pods. A conflist stays if pods have addresses through it, because they need it to end, or if the node
// would have no network without it.
func (i *installer) withdrawAll(written []string) error {
	if len(written) == 0 {
		return nil
	}
	others, err := independent(i.options, written)
	if err == nil && len(others) == 0 {
		err = errors.New("the runtime has no network configuration that can do without it")
	}
	for _, name := range written {
		if err == nil {
			err = i.options.withdraw(name, i.options.attachedBy(name))
		}
	}
	if err == nil {
		err = i.options.note()
	}
	if err != nil {
		i.once("this pod has no conflist, and the conflist of an earlier pod is not removed yet", "conflists", written,
			"reason", err)
	}
	return nil
}

// warn logs, once, what may prevent pods from getting the network of the conflist.
func (i *installer) warn(conflist []byte) {
	for _, name := range missingPlugins(conflist, i.options) {
		i.once("a plugin of the conflist is not in --bin-dir", "plugin", name, "dir", i.options.BinDir)
	}
	if names := leftAlone(conflist); len(names) > 0 {
		i.once("the plugins go by config.json and not by these fields of the conflist: leave them out", "fields", names)
	}
	if i.options.ConfigDir != netconf.DefaultConfigDir {
		i.once("the plugins find --config-dir by a variable of the runtime's environment", "variable",
			netconf.ConfigDirVariable, "dir", i.options.ConfigDir)
	}
	names, err := earlierConflists(i.options)
	if err != nil {
		i.once("other network configurations cannot be read", "error", err)
	}
	if len(names) > 0 {
		i.once("the runtime takes another network configuration, which comes before ours by its name", "others", names,
			"ours", i.options.ConflistName)
	}
}

func (i *installer) once(message string, args ...any) {
	if key := fmt.Sprint(append([]any{message}, args...)...); !i.said[key] {
		i.said[key] = true
		i.log.Warn(message, args...)
	}
}
