package install

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/bcsnet/bcsnet/test/controlplane"
)

// template renders the chart with values, and returns what it makes or what Helm says against it.
func template(t *testing.T, args ...string) (string, error) {
	t.Helper()
	root, err := controlplane.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(root, "bin", "tools", "helm"), append([]string{
		"template", "bcsnet", filepath.Join(root, "charts", "bcsnet"), "--namespace", controlplane.SystemNamespace,
	}, args...)...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// TestValuesRefused checks that what means nothing is refused, with a word that leads to it.
func TestValuesRefused(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"typo":               {[]string{"--set", "replica=3"}, "replica"},
		"typo below":         {[]string{"--set", "image.repo=x"}, "repo"},
		"number":             {[]string{"--set-string", "replicas=two"}, "replicas"},
		"ConfigMap":          {[]string{"--set", "floatingipConfig=floatingip-config"}, "floatingipConfig"},
		"digest":             {[]string{"--set", "image.digest=sha256:12"}, "digest"},
		"budget of nothing":  {[]string{"--set", "podDisruptionBudget.maxUnavailable=0"}, "maxUnavailable"},
		"memory":             {[]string{"--set", "goMemLimit=much"}, "goMemLimit"},
		"memory of no bytes": {[]string{"--set", "goMemLimit=900Mi"}, "goMemLimit"},
		"memory of nodes":    {[]string{"--set", "node.goMemLimit=100M"}, "goMemLimit"},
		"no budget at all":   {[]string{"--set", "podDisruptionBudget.maxUnavailable=0%"}, "maxUnavailable"},
		"port of its own":    {[]string{"--set", "extraArgs={--http-bind-address=:80}"}, "extraArgs"},
		"plain HTTP beside":  {[]string{"--set", "extraArgs={--plain-http}"}, "extraArgs"},
		"resources beside":   {[]string{"--set", "extraArgs={--node-resources=}"}, "extraArgs"},
		"variable beside":    {[]string{"--set", "extraEnv[0].name=BCSNET_NODE_RESOURCES"}, "extraEnv"},
		"history beside":     {[]string{"--set", "extraArgs={--history-parts=9}"}, "extraArgs"},
		"retention":          {[]string{"--set", "history.retention=30d"}, "retention"},
		"parts of a history": {[]string{"--set", "history.maxParts=1"}, "maxParts"},
		"typo of a variable": {[]string{"--set", "extraEnv[0].name=A,extraEnv[0].vlaue=b"}, "vlaue"},
		"server of no port":  {[]string{"--set", "apiServer.host=10.0.0.1"}, "apiServer.host and apiServer.port"},
		"port of no server":  {[]string{"--set", "apiServer.port=6443"}, "apiServer.host and apiServer.port"},
		"argument":           {[]string{"--set", "extraArgs={log-level=debug}"}, "extraArgs"},
		"another namespace": {[]string{"--namespace", "kube-system"},
			"bcsnet goes into the namespace bcsnet-system, not kube-system"},
		"old Kubernetes":     {[]string{"--kube-version", "1.30.0"}, "kubeVersion"},
		"interval":           {[]string{"--set", "serviceMonitor.interval=often"}, "interval"},
		"rule of policies":   {[]string{"--set", "policies.enable=false"}, "enable"},
		"node capacity":      {[]string{"--set", "nodeCapacity=false"}, "nodeCapacity"},
		"no place for files": {[]string{"--set", "image.repository="}, "repository"},
		"typo of the node":   {[]string{"--set", "node.enable=true"}, "enable"},
		"no conflist":        {[]string{"--set", "node.conflist=br0"}, "conflist"},
		"name of a conflist": {[]string{"--set", "node.conflistName=../10-bcsnet.conflist"}, "conflistName"},
		"hidden conflist":    {[]string{"--set", "node.conflistName=.conflist"}, "conflistName"},
		"directory":          {[]string{"--set", "node.binDir=opt/cni/bin"}, "binDir"},
		"port":               {[]string{"--set", "node.metricsPort=0"}, "metricsPort"},
		"plain HTTP":         {[]string{"--set", "plainHTTP=yes"}, "plainHTTP"},
		"plain HTTP quoted":  {[]string{"--set-string", "plainHTTP=true"}, "plainHTTP"},
		"URL of the server":  {[]string{"--set", "apiServer.host=https://10.0.0.1"}, "apiServer"},
		"host with a port":   {[]string{"--set", "apiServer.host=10.0.0.1:6443"}, "apiServer"},
		"host in brackets":   {[]string{"--set", "apiServer.host=[fd00::1]"}, "apiServer"},
		"port of the server": {[]string{"--set", "apiServer.port=70000"}, "apiServer"},
		"name of a port":     {[]string{"--set", "apiServer.port=https"}, "apiServer"},
		"port in quotes":     {[]string{"--set-string", "apiServer.port=65536"}, "apiServer"},
		"one's own TLS":      {[]string{"--set", "tls.secretName=a/b"}, "secretName"},
		"typo of TLS":        {[]string{"--set", "tls.secret=a"}, "secret"},
		"TLS of no CA": {[]string{"--set", "tls.secretName=a", "--set", "node.enabled=true"},
			"tls.caSecretName or tls.caConfigMap"},
		"two CAs": {[]string{"--set", "tls.caConfigMap=a", "--set", "tls.caSecretName=b", "--set",
			"node.enabled=true"}, "one of tls.caConfigMap"},
		"allocator's port":   {[]string{"--set", "node.metricsPort=8090"}, "metricsPort"},
		"controller's port":  {[]string{"--set", "node.metricsPort=8091"}, "metricsPort"},
		"port of probes":     {[]string{"--set", "node.metricsPort=8092"}, "metricsPort"},
		"roll of nothing":    {[]string{"--set", "node.maxUnavailable=0"}, "maxUnavailable"},
		"capability":         {[]string{"--set", "node.capabilities={dac_override}"}, "capabilities"},
		"memory in GB":       {[]string{"--set", "resources.limits.memory=1GB"}, "memory"},
		"memory of the node": {[]string{"--set", "node.resources.limits.memory=128MB"}, "memory"},
		"typo of a taint":    {[]string{"--set", "tolerations[0].efect=NoSchedule"}, "efect"},
		"effect of a taint":  {[]string{"--set", "node.tolerations[0].effect=NoScheduling"}, "effect"},
		"typo of a spread":   {[]string{"--set", "topologySpreadConstraints[0].maxskew=1"}, "maxskew"},
		"two tags":           {[]string{"--set", "image.repository=registry:5000/bcsnet:v1"}, "repository"},
		"tag with a digest":  {[]string{"--set", "node.image.tag=v1@sha256:12"}, "tag"},
		"more than all":      {[]string{"--set", "podDisruptionBudget.maxUnavailable=200%"}, "maxUnavailable"},
		"prefix of a right":  {[]string{"--set", "node.capabilities={CAP_NET_ADMIN}"}, "capabilities"},
		"root as directory":  {[]string{"--set", "node.binDir=/"}, "binDir"},
		"one directory": {[]string{"--set", "node.enabled=true,node.binDir=/etc/cni,node.netDir=/etc/cni"},
			"node.binDir and node.netDir"},
		"removal of nothing": {[]string{"--set", "node.uninstall=true"}, "node.uninstall"},
		"blocks beside":      {[]string{"--set", "extraArgs={--hostnic-ipam-config=a/b}"}, "extraArgs"},
		"limit beside":       {[]string{"--set", "extraEnv[0].name=GOMEMLIMIT"}, "hint: set goMemLimit"},
		"hint at a value":    {[]string{"--set", "extraArgs={--ipam-claims}"}, "hint: set ipamClaims"},
		"hint at a variable": {[]string{"--set", "extraEnv[0].name=BCSNET_TLS_CERT_FILE"}, "hint: set tls.secretName"},
		"two levels": {[]string{"--set", "logLevel=info,extraArgs={--log-level=debug}"},
			"extraArgs and logLevel"},
		"two levels of a node": {
			[]string{"--set", "node.logLevel=info,node.extraArgs={--log-level=debug}"},
			"node.extraArgs and node.logLevel",
		},
		"loud": {[]string{"--set", "logLevel=loud"}, "logLevel"},
		"alert of no name": {[]string{"--set", "prometheusRule.enabled=true,prometheusRule.alerts.Bcsnet.for=1m"},
			"names Bcsnet"},
		"field of an alert":   {[]string{"--set", "prometheusRule.alerts.BcsnetDown.threshold=1"}, "threshold"},
		"scheme of a mirror":  {[]string{"--set", "imageRegistry=https://mirror"}, "imageRegistry"},
		"two on a node":       {[]string{"--set-json", `affinity={"podAntiAffinity":{}}`}, "podAntiAffinity"},
		"update of the nodes": {[]string{"--set", "node.updateStrategy=Recreate"}, "updateStrategy"},
		"pages of no TLS":     {[]string{"--set", "ui.enabled=true"}, "ui.tlsSecretName"},
		"plain pages":         {[]string{"--set", "ui.url=http://pools.example.com"}, "url"},
		"a Prometheus's user": {[]string{"--set", "ui.prometheusUrl=http://user:secret@prometheus"}, "prometheusUrl"},
		"path of pages":       {[]string{"--set", "ui.url=https://example.com/pools"}, "url"},
		"typo of the pages":   {[]string{"--set", "ui.enable=true"}, "enable"},
		"image of nodes":      {[]string{"--set", "node.image.digest=12"}, "digest"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if out, err := template(t, test.args...); err == nil || !strings.Contains(out, test.want) {
				t.Errorf("helm says %v, without %q: %.300s", err, test.want, out)
			}
		})
	}
}

// TestAPIServer takes what a host and a port can be.
func TestAPIServer(t *testing.T) {
	for _, args := range [][]string{
		{"--set", "apiServer.host=api.example.com", "--set", "apiServer.port=6443"},
		{"--set", "apiServer.host=fd00::1", "--set-string", "apiServer.port=65535"},
		{"--set", "apiServer.host=::ffff:10.0.0.1", "--set", "apiServer.port=443"},
		{"--set", "apiServer.host=", "--set-string", "apiServer.port="},
	} {
		if out, err := template(t, args...); err != nil {
			t.Errorf("%v: %s", args, out)
		}
	}
}

// TestTextsAreQuoted: what is a text in the objects is one, whatever it would be without quotes.
func TestTextsAreQuoted(t *testing.T) {
	t.Parallel()
	out, err := template(t, "--set", "goMemLimit=off", "--set", "node.enabled=true", "--set",
		"node.goMemLimit=943718400",
		"--set-string", "tls.secretName=123", "--set-string", "tls.caSecretName=456", "--set-string",
		"priorityClassName=7",
		"--set", "image.repository=registry:5000/bcsnet")
	if err != nil {
		t.Fatal(out)
	}
	for _, want := range []string{
		`value: "off"`, `value: "943718400"`, `secretName: "123"`, `priorityClassName: "7"`,
		"image: registry:5000/bcsnet:",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%s is not there", want)
		}
	}
}

// TestTakesBack checks that no names of resources are what has the controller take back what nodes publish.
func TestTakesBack(t *testing.T) {
	t.Parallel()
	out, err := template(t, "--set-json", "nodeCapacity.resources=[]")
	if err != nil || !strings.Contains(out, "- --node-resources=\n") {
		t.Errorf("%v: %.300s", err, out)
	}
}

// TestValues sets what can be set, and finds it in the objects.
func TestValues(t *testing.T) {
	t.Parallel()
	digest := "sha256:" + strings.Repeat("0a", 32)
	out, err := template(t, "--set", "image.digest="+digest, "--set", "image.pullPolicy=Always", "--set",
		"imagePullSecrets[0].name=pull",
		"--set", "replicas=3", "--set", "plainHTTP=false", "--set", "extraArgs={--log-format=json}",
		"--set", "extraEnv[0].name=A,extraEnv[0].value=b", "--set", "nodeSelector.role=infra", "--set",
		"apiServer.host=10.0.0.1",
		"--set", "apiServer.port=6443", "--set", "floatingipConfig=a/b", "--set", "hostnicIPAMConfig=c/d", "--set",
		"ipamClaims=true,clusterAPI=true,services.enabled=true,services.defaultClass=true,services.kubeVIP=true",
		"--set", "serviceMonitor.enabled=true", "--set", "serviceMonitor.labels.release=prom", "--set",
		"prometheusRule.enabled=true",
		"--set", "prometheusRule.labels.release=prom", "--set", "dashboard.enabled=true", "--set", "crds.install=false",
		"--set", "policies.enabled=false", "--set", "nodeCapacity.enabled=false", "--set", "tls.secretName=web")
	if err != nil {
		t.Fatal(out)
	}
	var names []string
	objects := map[string]map[string]any{}
	for document := range strings.SplitSeq(out, "\n---\n") {
		var o struct {
			Kind     string
			Metadata struct{ Name string }
			Spec     map[string]any
			Data     map[string]string
		}
		if err := yaml.Unmarshal([]byte(document), &o); err != nil {
			t.Fatalf("%v in %s", err, document)
		}
		names = append(names, o.Kind+" "+o.Metadata.Name)
		objects[o.Kind] = o.Spec
		if o.Kind == "ConfigMap" && !strings.Contains(o.Data["bcsnet.json"], `"title"`) {
			t.Errorf("the dashboard is %.100s", o.Data["bcsnet.json"])
		}
	}
	for _, want := range []string{
		"ServiceMonitor bcsnet-controller", "Service bcsnet-controller-metrics", "PrometheusRule bcsnet",
		"ConfigMap bcsnet-dashboard",
		"Role bcsnet-controller-floatingip", "Role bcsnet-controller-hostnic",
		"ClusterRole bcsnet-controller-ipamclaims", "ClusterRole bcsnet-controller-clusterapi",
		"ClusterRole bcsnet-controller-services",
	} {
		if !strings.Contains(strings.Join(names, "\n"), want) {
			t.Errorf("there is no %s among\n%s", want, strings.Join(names, "\n"))
		}
	}
	if strings.Contains(out, "CustomResourceDefinition\n") {
		t.Error("there are definitions although crds.install is false")
	}
	for _, absent := range []string{"ValidatingAdmissionPolicy", "node-capacity"} {
		if strings.Contains(strings.Join(names, "\n"), absent) {
			t.Errorf("there is a %s although it is switched off", absent)
		}
	}
	type spec = struct {
		Replicas int
		Template struct {
			Spec struct {
				NodeSelector     map[string]string
				ImagePullSecrets []map[string]string
				Volumes          []any
				Containers       []struct {
					Image, ImagePullPolicy string
					Args                   []string
					Env                    []struct{ Name, Value string }
					VolumeMounts           []any
				}
			}
		}
	}
	var d spec
	text, err := yaml.Marshal(objects["Deployment"])
	if err == nil {
		err = yaml.Unmarshal(text, &d)
	}
	if err != nil || len(d.Template.Spec.Containers) != 1 {
		t.Fatalf("the Deployment is %s: %v", text, err)
	}
	container := d.Template.Spec.Containers[0]
	env := map[string]string{}
	for _, e := range container.Env {
		env[e.Name] = e.Value
	}
	got := map[string]any{
		"image": container.Image, "policy": container.ImagePullPolicy, "replicas": d.Replicas, "args": container.Args,
		"env":   env,
		"nodes": d.Template.Spec.NodeSelector, "secrets": d.Template.Spec.ImagePullSecrets,
		"volumes": d.Template.Spec.Volumes, "mounts": container.VolumeMounts,
	}
	want := map[string]any{
		"image": "ghcr.io/bcsnet/bcsnet-controller@" + digest, "policy": "Always", "replicas": 3,
		"args": []string{
			"--http-bind-address=:8090", "--metrics-bind-address=:8091", "--health-probe-bind-address=:8092",
			"--plain-http=false",
			"--node-resources=", "--log-format=json",
		},
		"env": map[string]string{
			"BCSNET_POD_IP": "", "GOMEMLIMIT": "900MiB", "A": "b", "KUBERNETES_SERVICE_HOST": "10.0.0.1",
			"KUBERNETES_SERVICE_PORT": "6443", "BCSNET_FLOATINGIP_CONFIG": "a/b", "BCSNET_HOSTNIC_IPAM_CONFIG": "c/d",
			"BCSNET_IPAM_CLAIMS": "true", "BCSNET_CLUSTER_API": "true", "BCSNET_SERVICES": "true",
			"BCSNET_SERVICES_DEFAULT_CLASS": "true",
			"BCSNET_SERVICES_KUBE_VIP":      "true", "BCSNET_TLS_CERT_FILE": "/tls/tls.crt",
			"BCSNET_TLS_PRIVATE_KEY_FILE": "/tls/tls.key",
		},
		"volumes": []any{map[string]any{"name": "tls", "secret": map[string]any{"secretName": "web"}}},
		"mounts":  []any{map[string]any{"name": "tls", "mountPath": "/tls", "readOnly": true}},
		"nodes":   map[string]string{"role": "infra"}, "secrets": []map[string]string{{"name": "pull"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the Deployment (-want +got):\n%s", diff)
	}
}
