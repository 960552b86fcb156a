package node

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/containernetworking/cni/libcni"

	"github.com/bcsnet/bcsnet/pkg/cni/netconf"
)

// checkConflist returns an error for a conflist with which every ADD of the node would fail, before a runtime reads it.
func checkConflist(text []byte) error {
	list, err := libcni.NetworkConfFromBytes(text)
	if err != nil {
		return fmt.Errorf("it is not a network configuration: %w", err)
	}
	switch {
	case list.CNIVersion == "":
		return errors.New("cniVersion is missing")
	case len(list.Plugins) == 0: // CNI's library would read them from other files
		return errors.New("plugins are missing")
	}
	var errs []error
	for _, p := range list.Plugins {
		if p.Network.IPAM.Type != netconf.Type {
			continue
		}
		c, err := netconf.Parse(p.Bytes, "")
		if err != nil {
			errs = append(errs, fmt.Errorf("the plugin %s: %s", p.Network.Type, strings.ReplaceAll(err.Error(), "\n",
				"; ")))
		}
		for _, unknown := range c.Unknown {
			errs = append(errs, fmt.Errorf("the plugin %s: %w", p.Network.Type, unknown))
		}
	}
	return errors.Join(errs...)
}

// leftAlone returns the fields of a conflist that config.json overrides.
func leftAlone(text []byte) (names []string) {
	list, err := libcni.NetworkConfFromBytes(text)
	if err != nil {
		return nil // checkConflist reports the error
	}
	for _, p := range list.Plugins {
		if p.Network.IPAM.Type != netconf.Type {
			continue
		}
		c, _ := netconf.Parse(p.Bytes, "")
		names = append(names, c.Former...)
		if len(c.Replicas) > 0 {
			names = append(names, "ipam.netserviceEndpoint")
		}
	}
	return names
}

// missingPlugins returns the plugins of a network configuration that --bin-dir lacks. A runtime may have further
// directories.
func missingPlugins(text []byte, o Options) []string {
	var value any
	if json.Unmarshal(text, &value) != nil {
		return nil // checkConflist reports the error
	}
	return typesIn(value, func(name string) bool {
		_, err := os.Lstat(filepath.Join(o.BinDir, filepath.Base(name)))
		return name != "" && err != nil
	})
}

// earlierConflists returns the names of other network configurations that a runtime reads before ours.
func earlierConflists(o Options) (names []string, err error) {
	written, err := o.written()
	if err != nil {
		return nil, err
	}
	names, err = otherConflists(o, written)
	return slices.DeleteFunc(names, func(name string) bool { return name > o.ConflistName }), err
}

// independent returns the names of the runtime's network configurations that are not among some conflists of ours and
// name neither one of these, as Multus does for the cluster's own network, nor our plugins.
func independent(o Options, ours []string) (names []string, err error) {
	names, err = otherConflists(o, ours)
	return slices.DeleteFunc(names, func(name string) bool {
		text, err := readFile(filepath.Join(o.NetDir, name))
		return err != nil || namesOurs(text) ||
			slices.ContainsFunc(ours, func(our string) bool { return strings.Contains(string(text), our) })
	}), err
}

// otherConflists returns the names of the runtime's network configurations, except some and that of this pod.
func otherConflists(o Options, but []string) (names []string, err error) {
	files, err := libcni.ConfFiles(o.NetDir, []string{".conf", ".conflist", ".json"})
	for _, f := range files {
		if name := filepath.Base(f); name != o.ConflistName && !slices.Contains(but, name) {
			names = append(names, name)
		}
	}
	return names, err
}

// preferred returns the network configurations that a runtime prefers to our conflist, because it uses the first
// readable one by name. It returns an empty text for none, and if the pod has no conflist. A configuration that names
// our plugins is not reported, because it gives our addresses, too; nor is Multus, which itself uses the first of the
// others.
func (o *Options) preferred() string {
	if o.ConflistFile == "" {
		return ""
	}
	names, err := earlierConflists(*o)
	if err != nil {
		return "" // the installation reports the error
	}
	names = slices.DeleteFunc(names, func(name string) bool {
		text, err := readFile(filepath.Join(o.NetDir, name))
		return err != nil || !usable(name, text) || namesOurs(text) || isMultus(text)
	})
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
