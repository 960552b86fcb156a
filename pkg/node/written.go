package node

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/containernetworking/cni/libcni"

	"github.com/bcsnet/bcsnet/pkg/cni/netconf"
)

// writtenFile has the names of the conflists that pods of bcsnet-node wrote, as a JSON list. A name is added before its
// conflist is written, and removed after the conflist is, so that the list is complete even if a process is killed.
const writtenFile = "conflists.json"

// usualConflist is the conflist of a release that kept no list.
const usualConflist = "10-bcsnet.conflist"

// announceType is the chained plugin's type in network configurations.
const announceType = "bcsnet-announce"

// written returns the names of the conflists that pods of this node wrote and that may exist. If there is no list, or
// it is damaged, these are the usual conflist and that of this pod, provided that they name our plugins and only root
// can read them.
func (o *Options) written() (names []string, err error) {
	text, err := os.ReadFile(filepath.Join(o.ConfigDir, writtenFile))
	switch {
	case err == nil && json.Unmarshal(text, &names) == nil:
		return slices.DeleteFunc(names, func(name string) bool { return !isConflistName(name) }), nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("read which conflists are installed: %w", err)
	}
	names = nil
	for _, name := range []string{usualConflist, o.ConflistName} {
		path := filepath.Join(o.NetDir, name)
		if info, err := os.Lstat(path); err != nil || info.Mode() != 0o600 { // people's files are readable for others
			continue
		}
		if text, err := readFile(path); err == nil && namesOurs(text) {
			names = append(names, name)
		}
	}
	return slices.Compact(names), nil
}

// note stores the names of the conflists that are, or may be, installed.
func (o *Options) note(names ...string) error {
	slices.Sort(names)
	text, err := json.Marshal(slices.Compact(names))
	if err == nil {
		_, err = file{o.ConfigDir, writtenFile, append(text, '\n'), 0o600}.write()
	}
	if err != nil {
		return fmt.Errorf("note which conflists are installed: %w", err)
	}
	return nil
}

// isConflistName reports whether a runtime reads a conflist with this name.
func isConflistName(name string) bool {
	return name != "" && filepath.Base(name) == name && filepath.Ext(name) == ".conflist" && name[0] != '.'
}

// foreign is a network configuration in the runtime's directory that is not ours and names our plugins.
type foreign struct {
	name string
	text []byte
}

// foreigners returns the foreign network configurations. Files that cannot be read are skipped: a runtime cannot read
// them either.
func (o *Options) foreigners() (all []foreign, err error) {
	files, err := libcni.ConfFiles(o.NetDir, []string{".conf", ".conflist", ".json"})
	if err != nil {
		return nil, fmt.Errorf("read the network configurations: %w", err)
	}
	ours, err := o.written()
	if err != nil {
		return nil, err
	}
	slices.Sort(files)
	for _, path := range files {
		name := filepath.Base(path)
		if slices.Contains(ours, name) {
			continue
		}
		if text, err := readFile(path); err == nil && namesOurs(text) {
			all = append(all, foreign{name, text})
		}
	}
	return all, nil
}

// namesOurs reports whether a network configuration contains one of our plugins anywhere: as one of its plugins, as a
// plugin's IPAM, or as a delegate of another program.
func namesOurs(text []byte) bool {
	var value any
	return json.Unmarshal(text, &value) == nil && len(typesIn(value, isOurs)) > 0
}

func isOurs(plugin string) bool { return plugin == netconf.Type || plugin == announceType }

// typesIn returns the matching plugins of a network configuration, sorted by name.
func typesIn(value any, match func(string) bool) (names []string) {
	switch v := value.(type) {
	case map[string]any:
		if name, ok := v["type"].(string); ok && match(name) {
			names = append(names, name)
		}
		for _, field := range v {
			names = append(names, typesIn(field, match)...)
		}
	case []any:
		for _, element := range v {
			names = append(names, typesIn(element, match)...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// broken describes what may be missing for pods whose network configuration is not ours and names our plugins; empty
// for nothing. A runtime may have further directories of plugins.
func (o *Options) broken() string {
	all, err := o.foreigners()
	if err != nil {
		return err.Error()
	}
	for _, f := range all {
		if missing := missingPlugins(f.text, *o); len(missing) > 0 {
			return fmt.Sprintf("the network configuration %s, which bcsnet did not write, names bcsnet's plugins, "+
				"and %s is not in %s", f.name, strings.Join(missing, " and "), o.BinDir)
		}
	}
	return ""
}
