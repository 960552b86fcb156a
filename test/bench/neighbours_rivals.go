package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/bcsnet/bcsnet/test/controlplane"
)

// The plugins that are measured, and the main plugin that calls them.
const (
	ours        = "bcsnet-ipam"
	whereabouts = "whereabouts"
	bridge      = "bridge"
)

// rival is an IPAM plugin.
type rival struct {
	name, program string
	// main is the program of the main plugin.
	main string
	// ipam is the section of its configuration.
	ipam string
}

// rivals returns the plugins, and the directories in which a main plugin finds them.
func (p *plugin) rivals(ctx context.Context) (all []rival, path string, err error) {
	root, err := controlplane.ModuleRoot()
	if err != nil {
		return nil, "", err
	}
	bin := filepath.Join(root, "bin")
	reference := filepath.Join(bin, "cni")
	local := fmt.Sprintf(`{"type":%q,"dataDir":%q,"ranges":[[{"subnet":"10.96.0.0/22"}]]}`, hostLocal,
		filepath.Join(p.dir, "local"))
	all = []rival{
		{name: hostLocal, program: filepath.Join(reference, hostLocal), ipam: local},
		{name: ours, program: p.program, ipam: fmt.Sprintf(`{"type":%q}`, ours)},
	}
	other, err := p.whereabouts(ctx, filepath.Join(reference, whereabouts))
	if err != nil {
		return nil, "", err
	}
	all = append(all, other)
	for i := range all {
		all[i].main = filepath.Join(reference, bridge)
	}
	return all, bin + ":" + reference, nil
}

// whereabouts furnishes the API server for whereabouts, which calls it as an administrator.
func (p *plugin) whereabouts(ctx context.Context, program string) (rival, error) {
	manifest, err := controlplane.WhereaboutsCRDs()
	if err != nil {
		return rival{}, err
	}
	crds := filepath.Join(p.dir, "crds")
	err = errors.Join(os.Mkdir(crds, 0o700),
		os.WriteFile(filepath.Join(crds, "whereabouts.yaml"), []byte(manifest), 0o600))
	if err != nil {
		return rival{}, err
	}
	if err := p.b.cp.InstallCRDs(ctx, crds); err != nil {
		return rival{}, err
	}
	kubeconfig, settings := filepath.Join(p.dir, "kubeconfig"), filepath.Join(p.dir, "whereabouts.conf")
	if err := controlplane.WriteKubeconfigFor(p.b.cp.Config, kubeconfig); err != nil {
		return rival{}, err
	}
	return rival{
		name: whereabouts, program: program,
		ipam: fmt.Sprintf(`{"type":%q,"range":"10.98.0.0/22","kubernetes":{"kubeconfig":%q},"configuration_path":%q}`,
			whereabouts, kubeconfig, settings),
	}, os.WriteFile(settings, []byte("{}"), 0o600) // which it wants to be there
}
