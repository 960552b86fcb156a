package node

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	yamlutil "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/bcsnet/bcsnet/pkg/cni/netconf"
)

// render returns the objects of a folder of config.
func render(t *testing.T, folder string) (set appsv1.DaemonSet, conflist *corev1.ConfigMap) {
	t.Helper()
	objects, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), filepath.Join("..",
		"..", "config", folder))
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects.Resources() {
		text := must(o.AsYAML())
		switch o.GetKind() {
		case "DaemonSet":
			err = yaml.UnmarshalStrict(text, &set)
		case "ConfigMap":
			conflist = &corev1.ConfigMap{}
			err = yaml.UnmarshalStrict(text, conflist)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return set, conflist
}

// TestManifests has each folder for nodes: the commands take the arguments, what they name is mounted, and the
// container has no rights beyond its directories.
func TestManifests(t *testing.T) {
	for folder, c := range map[string]struct {
		bin, net, command string
		conflist          bool
	}{
		"node": {"/opt/cni/bin", "/etc/cni/net.d", "install", true},
		"node-k3s": {"/var/lib/rancher/k3s/data/cni", "/var/lib/rancher/k3s/agent/etc/cni/net.d", "install",
			true},
		"node-multus":    {"/opt/cni/bin", "/etc/cni/net.d", "install", false},
		"node-uninstall": {"/opt/cni/bin", "/etc/cni/net.d", "uninstall", true},
	} {
		t.Run(folder, func(t *testing.T) {
			set, conflist := render(t, folder)
			spec := set.Spec.Template.Spec
			args := slices.Clone(spec.Containers[0].Args)
			for i := range args {
				args[i] = strings.NewReplacer("$(NODE_NAME)", "n1", "$(HOST_IP)", "10.0.0.11").Replace(args[i])
			}
			command, rest, err := NewCommand("").Find(args)
			if err != nil || command.Name() != c.command {
				t.Fatalf("%v: %v", args, err)
			}
			if err := command.ParseFlags(rest); err != nil {
				t.Fatal(err)
			}
			if err := command.PreRunE(command, nil); err != nil {
				t.Error(err)
			}
			if ca := command.Flag("ca-config-map"); ca != nil &&
				ca.Value.String() != "bcsnet-system/bcsnet-controller-ca" {
				t.Errorf("--ca-config-map is %s", ca.Value)
			}
			if at := command.Flag("token-file").Value.String(); at != tokenPath(spec) {
				t.Errorf("--token-file is %s, and a token for bcsnet is at %q", at, tokenPath(spec))
			}
			host := hostPaths(spec)
			for flag, want := range map[string]string{
				"bin-dir": c.bin, "net-dir": c.net, "config-dir": netconf.DefaultConfigDir,
				"data-dir": netconf.DefaultDataDir, "run-dir": netconf.DefaultRunDir,
			} {
				if got := host[command.Flag(flag).Value.String()]; got != want {
					t.Errorf("--%s is %s of the node, want %s", flag, got, want)
				}
			}
			if (conflist != nil) != c.conflist {
				t.Errorf("the conflist is there: %t", conflist != nil)
			}
			if f := command.Flag("conflist-file"); f != nil && (f.Value.String() != "") != c.conflist {
				t.Errorf("--conflist-file is %s", f.Value)
			}
			s := spec.Containers[0].SecurityContext
			if s.Privileged != nil || *s.AllowPrivilegeEscalation || !*s.ReadOnlyRootFilesystem ||
				len(s.Capabilities.Add) > 0 ||
				s.Capabilities.Drop[0] != "ALL" || s.SELinuxOptions.Type != "spc_t" {
				t.Errorf("the container may %+v", s)
			}
		})
	}
}

// hostPaths returns the directories of the node by where the container has them.
func hostPaths(spec corev1.PodSpec) map[string]string {
	all := map[string]string{}
	for _, m := range spec.Containers[0].VolumeMounts {
		for _, v := range spec.Volumes {
			if v.Name == m.Name && v.HostPath != nil && !m.ReadOnly {
				all[m.MountPath] = v.HostPath.Path
			}
		}
	}
	return all
}

// tokenPath returns where the container has a token for the audience bcsnet that is good for an hour.
func tokenPath(spec corev1.PodSpec) string {
	for _, v := range spec.Volumes {
		if v.Projected == nil || len(v.Projected.Sources) != 1 || v.Projected.Sources[0].ServiceAccountToken == nil {
			continue
		}
		token := v.Projected.Sources[0].ServiceAccountToken
		for _, m := range spec.Containers[0].VolumeMounts {
			if m.Name == v.Name && token.Audience == "bcsnet" && *token.ExpirationSeconds == 3600 {
				return filepath.Join(m.MountPath, token.Path)
			}
		}
	}
	return ""
}

// TestShippedConflists has the networks that we ship as examples: each is one that would be installed.
func TestShippedConflists(t *testing.T) {
	o := optionsIn("/")
	_, conflist := render(t, "node")
	if err := checkConflist([]byte(conflist.Data[o.ConflistName])); err != nil {
		t.Error(err)
	}
	file, err := os.ReadFile(filepath.Join("..", "..", "examples", "multus", "network.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	reader := yamlutil.NewYAMLReader(bufio.NewReader(bytes.NewReader(file)))
	var n int
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		var object struct {
			Kind string
			Spec struct{ Config string }
		}
		if err := errors.Join(err, yaml.Unmarshal(document, &object)); err != nil {
			t.Fatal(err)
		}
		if object.Kind != "NetworkAttachmentDefinition" {
			continue
		}
		n++
		if err := checkConflist([]byte(object.Spec.Config)); err != nil {
			t.Error(err)
		}
	}
	if n != 1 {
		t.Errorf("%d NetworkAttachmentDefinitions", n)
	}
}
