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

// writtenFile has the names of the conflists that pods of bcsnet-node wrote, as a JSON list. A name is there before its
// conflist is, and until that is gone, whoever is killed meanwhile.
const writtenFile = "conflists.json"

// usualConflist is the conflist of a release that kept no list.
const usualConflist = "10-bcsnet.conflist"

// announceType is what network configurations call the chained plugin.
const announceType = "bcsnet-announce"

// written returns the names of the conflists that pods of this node wrote, and that may be there. If nobody kept a
// list, or it is damaged, these are the usual one and that of this pod, provided that they name our plugins and that
// only root reads them.
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
		if info, err := os.Lstat(path); err != nil || info.Mode() != 0o600 { // people write what others may read
			continue
		}
		if text, err := readFile(path); err == nil && namesOurs(text) {
			names = append(names, name)
		}
	}
	return slices.Compact(names), nil
}

// note keeps the names of the conflists that are, or may be, installed.
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

// isConflistName reports whether a text is a name for a conflist that a runtime reads.
func isConflistName(name string) bool {
	return name != "" && filepath.Base(name) == name && filepath.Ext(name) == ".conflist" && name[0] != '.'
}

// foreign is a network configuration of the runtime's directory that is none of ours and names our plugins.
type foreign struct {
	name string
	text []byte
}

// foreigners returns those network configurations. What cannot be read names nothing: a runtime cannot read it either.
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

// namesOurs reports whether a network configuration has one of our plugins anywhere: as one of its plugins, as the IPAM
// of one, or as a delegate of another program.
func namesOurs(text []byte) bool {
	var value any
	return json.Unmarshal(text, &value) == nil && len(typesIn(value, isOurs)) > 0
}

func isOurs(plugin string) bool { return plugin == netconf.Type || plugin == announceType }

// typesIn returns the plugins of a network configuration that match, in the order of their names.
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

// broken returns what pods may lack that get their network by a configuration which is none of ours and names our
// plugins; empty for nothing. A runtime may have further directories of plugins.
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
