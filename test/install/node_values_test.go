package install

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// nodeSide renders the chart, and returns what it has for nodes.
func nodeSide(t *testing.T, args ...string) (set *appsv1.DaemonSet, conflist *corev1.ConfigMap, names []string) {
	t.Helper()
	out, err := template(t, args...)
	if err != nil {
		t.Fatal(out)
	}
	for document := range strings.SplitSeq(out, "\n---\n") {
		var o struct {
			Kind     string
			Metadata struct{ Name string }
		}
		if err := yaml.Unmarshal([]byte(document), &o); err != nil {
			t.Fatalf("%v in %s", err, document)
		}
		switch o.Metadata.Name {
		case "bcsnet-node", "bcsnet-node-installer", "bcsnet-node-events", "bcsnet-conflist":
			names = append(names, o.Kind+" "+o.Metadata.Name)
		}
		switch {
		case o.Kind == "DaemonSet":
			set = &appsv1.DaemonSet{}
			err = yaml.UnmarshalStrict([]byte(document), set)
		case o.Metadata.Name == "bcsnet-conflist":
			conflist = &corev1.ConfigMap{}
			err = yaml.UnmarshalStrict([]byte(document), conflist)
		}
		if err != nil {
			t.Fatalf("%v in %s", err, document)
		}
	}
	slices.Sort(names)
	return set, conflist, names
}

// TestNodeSide has the node side when it is asked for, and then all of it.
func TestNodeSide(t *testing.T) {
	t.Parallel()
	role := []string{"ClusterRole bcsnet-node"} // it is one of callers
	if _, _, names := nodeSide(t); !slices.Equal(names, role) {
		t.Errorf("by default there are %v", names)
	}
	set, conflist, names := nodeSide(t, "--set", "node.enabled=true")
	want := []string{
		"ClusterRole bcsnet-node", "ClusterRole bcsnet-node-installer", "ClusterRoleBinding bcsnet-node",
		"ClusterRoleBinding bcsnet-node-installer", "ConfigMap bcsnet-conflist", "DaemonSet bcsnet-node", "Role bcsnet-node",
		"Role bcsnet-node-events", "RoleBinding bcsnet-node", "RoleBinding bcsnet-node-events", "ServiceAccount bcsnet-node",
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if set.Spec.Template.Spec.Containers[0].Image != "ghcr.io/bcsnet/bcsnet-node:latest" || conflist.Data["10-bcsnet.conflist"] == "" {
		t.Errorf("the image is %s, and the conflist %v", set.Spec.Template.Spec.Containers[0].Image, conflist.Data)
	}
}

// TestNodeValues sets what can be set of the node side, and finds it in the objects.
func TestNodeValues(t *testing.T) {
	t.Parallel()
	set, conflist, _ := nodeSide(t, "--set", "node.enabled=true", "--set", "node.image.repository=r/n", "--set", "image.tag=v1",
		"--set", "node.image.pullPolicy=Always", "--set", "imagePullSecrets[0].name=pull", "--set-json", `node.conflist="{\"name\": \"x\"}"`,
		"--set", "node.conflistName=05-x.conflist", "--set", "node.binDir=/b", "--set", "node.netDir=/n", "--set", "node.extraArgs={--log-level=debug}",
		"--set", "node.metricsPort=9999", "--set", "node.resources.limits.memory=1Gi", "--set", "node.goMemLimit=900MiB",
		"--set", "node.maxUnavailable=2", "--set", "node.priorityClassName=p", "--set", "node.nodeSelector.role=worker",
		"--set", "node.tolerations[0].key=k", "--set", "node.seLinuxType=", "--set", "node.capabilities={DAC_OVERRIDE}",
		"--set", "apiServer.host=10.0.0.1", "--set", "apiServer.port=6443")
	if diff := cmp.Diff(map[string]string{"05-x.conflist": "{\"name\": \"x\"}\n"}, conflist.Data); diff != "" {
		t.Errorf("the conflist (-want +got):\n%s", diff)
	}
	spec := set.Spec.Template.Spec
	c := spec.Containers[0]
	env, paths := map[string]string{}, map[string]string{}
	for _, e := range c.Env {
		env[e.Name] = e.Value
	}
	for _, v := range spec.Volumes {
		if v.HostPath != nil {
			paths[v.Name] = v.HostPath.Path
		}
	}
	got := map[string]any{
		"image": c.Image, "policy": c.ImagePullPolicy, "secrets": spec.ImagePullSecrets, "args": c.Args, "env": env, "paths": paths,
		"port": c.Ports[0].ContainerPort, "memory": c.Resources.Limits.Memory().String(),
		"roll":  set.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable.String(),
		"class": spec.PriorityClassName, "nodes": spec.NodeSelector, "tolerations": spec.Tolerations,
		"selinux": c.SecurityContext.SELinuxOptions, "capabilities": *c.SecurityContext.Capabilities,
	}
	want := map[string]any{
		"image": "r/n:v1", "policy": corev1.PullAlways, "secrets": []corev1.LocalObjectReference{{Name: "pull"}},
		"args": []string{
			"install", "--node=$(NODE_NAME)", "--host=$(HOST_IP)", "--bin-dir=/host/bin", "--net-dir=/host/net.d",
			"--conflist-name=05-x.conflist", "--conflist-file=/conflist/05-x.conflist",
			"--ca-config-map=bcsnet-system/bcsnet-controller-ca", "--token-file=/token/token", "--http-bind-address=:9999",
			"--log-level=debug",
		},
		"env": map[string]string{
			"NODE_NAME": "", "HOST_IP": "", "GOMEMLIMIT": "900MiB", "KUBERNETES_SERVICE_HOST": "10.0.0.1",
			"KUBERNETES_SERVICE_PORT": "6443",
		},
		"paths": map[string]string{
			"bin": "/b", "net": "/n", "config": "/etc/cni/net.d/bcsnet.d", "data": "/var/lib/cni/bcsnet", "run": "/run/bcsnet",
		},
		"port": int32(9999), "memory": "1Gi", "roll": "2", "class": "p",
		"nodes":       map[string]string{"kubernetes.io/os": "linux", "role": "worker"},
		"tolerations": []corev1.Toleration{{Key: "k"}}, "selinux": (*corev1.SELinuxOptions)(nil),
		"capabilities": corev1.Capabilities{Drop: []corev1.Capability{"ALL"}, Add: []corev1.Capability{"DAC_OVERRIDE"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the DaemonSet (-want +got):\n%s", diff)
	}
}

// TestNodeWithoutConflist has Multus name the networks of pods, and the removal, which needs no conflist either.
func TestNodeWithoutConflist(t *testing.T) {
	t.Parallel()
	set, conflist, _ := nodeSide(t, "--set", "node.enabled=true", "--set", "node.conflist=")
	args := strings.Join(set.Spec.Template.Spec.Containers[0].Args, " ")
	if conflist != nil || strings.Contains(args, "conflist") {
		t.Errorf("%s, with %v", args, conflist)
	}
	set, _, _ = nodeSide(t, "--set", "node.enabled=true", "--set", "node.uninstall=true")
	args = strings.Join(set.Spec.Template.Spec.Containers[0].Args, " ")
	want := "uninstall --stay --node=$(NODE_NAME) --bin-dir=/host/bin --net-dir=/host/net.d --token-file=/token/token --http-bind-address=:8093"
	if args != want || set.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable.String() != "100%" {
		t.Errorf("%s, %v", args, set.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable)
	}
}

// TestNodeCA has the node side trust another CA than the controller's own, from one of two places, and the removal need
// none.
func TestNodeCA(t *testing.T) {
	t.Parallel()
	file := []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}}
	for value, want := range map[string]corev1.VolumeSource{
		"tls.caSecretName": {Secret: &corev1.SecretVolumeSource{SecretName: "mine", Items: file}},
		"tls.caConfigMap": {ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: "mine"}, Items: file,
		}},
	} {
		set, _, _ := nodeSide(t, "--set", "node.enabled=true", "--set", "tls.secretName=web", "--set", value+"=mine")
		spec := set.Spec.Template.Spec
		at := slices.IndexFunc(spec.Volumes, func(v corev1.Volume) bool { return v.Name == "ca" })
		if at < 0 || !cmp.Equal(spec.Volumes[at].VolumeSource, want) {
			t.Errorf("%s: the volumes are %+v", value, spec.Volumes)
		}
		mounted := func(m corev1.VolumeMount) bool { return m.Name == "ca" && m.MountPath == "/ca" && m.ReadOnly }
		if c := spec.Containers[0]; !slices.ContainsFunc(c.VolumeMounts, mounted) || !slices.Contains(c.Args, "--ca-file=/ca/ca.crt") ||
			strings.Contains(strings.Join(c.Args, " "), "--ca-config-map") {
			t.Errorf("%s: %v, %+v", value, c.Args, c.VolumeMounts)
		}
	}
	set, _, _ := nodeSide(t, "--set", "node.enabled=true", "--set", "node.uninstall=true", "--set", "tls.secretName=web")
	if slices.ContainsFunc(set.Spec.Template.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == "ca" }) {
		t.Error("what removes the plugins has a CA")
	}
}

// TestNodeMonitor has the node side scraped where it is installed, at the port that it has, and nowhere else.
func TestNodeMonitor(t *testing.T) {
	t.Parallel()
	monitored := []string{"--set", "serviceMonitor.enabled=true", "--set", "serviceMonitor.labels.release=prom"}
	out, err := template(t, monitored...)
	if err != nil || strings.Contains(out, "bcsnet-node-metrics") {
		t.Errorf("without a node side: %v, %s", err, out)
	}
	out, err = template(t, append(monitored, "--set", "node.enabled=true", "--set", "node.metricsPort=9999")...)
	if err != nil {
		t.Fatal(out)
	}
	found := map[string]any{}
	for _, o := range parse(t, out) {
		if name := o.GetName(); name == "bcsnet-node-metrics" || name == "bcsnet-node" && o.GetKind() == "ServiceMonitor" {
			found[o.GetKind()] = o.Object["spec"]
			if o.GetKind() == "ServiceMonitor" && o.GetLabels()["release"] != "prom" {
				t.Errorf("the labels are %v", o.GetLabels())
			}
		}
	}
	want := map[string]any{
		"Service": map[string]any{
			"clusterIP": "None", "selector": map[string]any{"app.kubernetes.io/name": "bcsnet-node"},
			"ports": []any{map[string]any{"name": "metrics", "port": float64(9999)}},
		},
		"ServiceMonitor": map[string]any{
			"selector": map[string]any{"matchLabels": map[string]any{"app.kubernetes.io/name": "bcsnet-node-metrics"}},
			"endpoints": []any{map[string]any{"port": "metrics", "interval": "30s", "relabelings": []any{
				map[string]any{"sourceLabels": []any{"__meta_kubernetes_pod_node_name"}, "targetLabel": "instance"},
			}}},
		},
	}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
