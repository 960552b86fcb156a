package install

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"
)

// TestNodeValues renders the DaemonSet as the kinds of nodes need it.
func TestNodeValues(t *testing.T) {
	t.Parallel()
	if out, err := template(t); err != nil || strings.Contains(out, "bcsnet-node") {
		t.Errorf("by default nodes get something: %v", err)
	}
	for name, test := range map[string]struct {
		args         []string
		want         []string // arguments
		conflist     bool
		bin, network string
		roll         string
	}{
		"default": {nil, []string{"install", "--conflist-file=/conflist/10-bcsnet.conflist"}, true, "/opt/cni/bin", "/etc/cni/net.d", "10%"},
		"Multus":  {[]string{"--set", "node.conflist="}, []string{"install"}, false, "/opt/cni/bin", "/etc/cni/net.d", "10%"},
		"k3s": {
			[]string{"--set", "node.binDir=/a/bin", "--set", "node.netDir=/a/net.d"},
			[]string{"install", "--conflist-file=/conflist/10-bcsnet.conflist"}, true, "/a/bin", "/a/net.d", "10%",
		},
		"uninstall": {[]string{"--set", "node.uninstall=true"}, []string{"uninstall", "--stay"}, true, "/opt/cni/bin", "/etc/cni/net.d", "100%"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, err := template(t, append(test.args, "--set", "node.enabled=true")...)
			if err != nil {
				t.Fatal(out)
			}
			if got := strings.Contains(out, "name: bcsnet-conflist\n"); got != test.conflist {
				t.Errorf("there is a conflist: %v", got)
			}
			var d appsv1.DaemonSet
			for document := range strings.SplitSeq(out, "\n---\n") {
				if strings.Contains(document, "\nkind: DaemonSet\n") {
					if err := yaml.UnmarshalStrict([]byte(document), &d); err != nil {
						t.Fatal(err)
					}
				}
			}
			if len(d.Spec.Template.Spec.Containers) != 1 {
				t.Fatalf("the DaemonSet is %+v", d)
			}
			var args []string
			for _, arg := range d.Spec.Template.Spec.Containers[0].Args {
				switch name, _, _ := strings.Cut(arg, "="); name {
				case "--node", "--host", "--bin-dir", "--net-dir", "--http-bind-address":
				default:
					args = append(args, arg)
				}
			}
			paths := map[string]string{}
			for _, v := range d.Spec.Template.Spec.Volumes {
				if v.HostPath != nil {
					paths[v.Name] = v.HostPath.Path
				}
			}
			got := []any{args, paths["bin"], paths["net"], d.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable.String()}
			if diff := cmp.Diff([]any{test.want, test.bin, test.network, test.roll}, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
