package node

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/containernetworking/cni/libcni"
)

// preferred returns the network configurations that a runtime prefers to our conflist, because it uses the first
// readable one by name. It returns an empty text for none, and if the pod has no conflist. A configuration that names
// our plugins is not reported, because it gives our addresses, too; nor is Multus, which itself uses the first of the
// others.
func (o *Options) preferred() string {
	if o.ConflistFile == "" {
		return ""
	}
	files, err := libcni.ConfFiles(o.NetDir, []string{".conf", ".conflist", ".json"})
	if err != nil {
		return "" // the installation reports the error
	}
	ours, err := o.written()
	if err != nil {
		return ""
	}
	var names []string
	for _, path := range files {
		name := filepath.Base(path)
		if name >= o.ConflistName || slices.Contains(ours, name) {
			continue
		}
		text, err := readFile(path)
		if err == nil && usable(name, text) && !namesOurs(text) && !isMultus(text) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	slices.Sort(names)
	return fmt.Sprintf("%s in %s before %s: pods that begin get no address of bcsnet; hint: remove the file, or give "+
		"bcsnet's an earlier name by --conflist-name", strings.Join(names, ", "), o.NetDir, o.ConflistName)
}

// usable reports whether a runtime can use a network configuration. It skips others.
func usable(name string, text []byte) bool {
	if filepath.Ext(name) == ".conflist" {
		list, err := libcni.ConfListFromBytes(text)
		return err == nil && len(list.Plugins) > 0
	}
	_, err := libcni.NetworkPluginConfFromBytes(text)
	return err == nil
}

// isMultus reports whether a network configuration belongs to thin or thick Multus.
func isMultus(text []byte) bool {
	var value any
	return json.Unmarshal(text, &value) == nil &&
		len(typesIn(value, func(plugin string) bool { return strings.HasPrefix(plugin, "multus") })) > 0
}
