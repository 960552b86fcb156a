package install

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/bcsnet/bcsnet/test/controlplane"
)

// plainFlag has the controller answer plain HTTP of other machines.
const plainFlag = "--plain-http"

// TestPlainHTTPOfANewInstallation: it answers none of other machines, unless that is asked for; nor does what is
// rendered without a cluster.
func TestPlainHTTPOfANewInstallation(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	for name, args := range map[string]struct{ helm, bcsnetctl []string }{
		"by default":    {},
		"asked for":     {[]string{"--set", "plainHTTP=true"}, []string{plainFlag}},
		"not asked for": {[]string{"--set", "plainHTTP=false"}, []string{plainFlag + "=false"}},
	} {
		want := name == "asked for"
		rendered, err := template(t, args.helm...)
		if err != nil {
			t.Fatal(rendered)
		}
		for way, out := range map[string]string{
			"helm template": rendered, "helm, with a cluster": c.tryHelm(args.helm...),
			"bcsnetctl install --print": c.bcsnetctl(append([]string{"install", "--print", "--image", image}, args.bcsnetctl...)...),
			"bcsnetctl install": c.bcsnetctl(append([]string{
				"install", "--image", image, "--dry-run=client", "--yes", "-o", "yaml",
			}, args.bcsnetctl...)...),
		} {
			if got := c.plainIn(out); got != want {
				t.Errorf("%s, %s: plain HTTP of other machines is answered: %t, want %t", way, name, got, want)
			}
		}
	}
}

// tryHelm has Helm render what an upgrade or installation would bring to the cluster, with what it looks up there.
func (c *clusterOf) tryHelm(args ...string) string {
	c.t.Helper()
	return c.helm(append([]string{
		"template", "bcsnet", c.chart(), "--namespace", controlplane.SystemNamespace, "--dry-run=server", "--is-upgrade",
	}, args...)...)
}

// plainIn returns what the flag of manifests is set to. It stands there in any case, and once.
func (c *clusterOf) plainIn(manifests string) bool {
	c.t.Helper()
	on, off := strings.Count(manifests, "- "+plainFlag+"=true\n"), strings.Count(manifests, "- "+plainFlag+"=false\n")
	if on+off != 1 || strings.Count(manifests, "- "+plainFlag) != 1 {
		c.t.Errorf("%s is not set once in\n%s", plainFlag, manifests)
	}
	return on == 1
}

// TestPlainHTTPOfAnUpgrade: it goes on as the controller that runs, Helm's way and ours by the same rule, unless
// something else is asked for.
func TestPlainHTTPOfAnUpgrade(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.bcsnetctl("install", "--yes", "--image", image)
	const bind = "--http-bind-address=:8090"
	ended := `{"conditions":[{"type":"Progressing","status":"True","reason":"NewReplicaSetAvailable"}]}`
	variable := func(value string) map[string]any {
		return map[string]any{"name": "BCSNET_PLAIN_HTTP", "value": value}
	}
	elsewhere := map[string]any{"name": "BCSNET_PLAIN_HTTP", "valueFrom": map[string]any{
		"fieldRef": map[string]any{"fieldPath": "status.podIP"},
	}}
	for name, test := range map[string]struct {
		args   []string
		env    []map[string]any
		status string
		ca     bool
		want   bool
	}{
		"never came up":                          {args: []string{bind}},
		"never came up, though it tried":         {args: []string{bind}, status: `{"conditions":[{"type":"Progressing","status":"False","reason":"ProgressDeadlineExceeded"}]}`},
		"never came up, and was to answer":       {args: []string{bind, plainFlag}, want: true},
		"refuses":                                {args: []string{bind}, status: `{"replicas":1,"readyReplicas":1}`, ca: true},
		"answers":                                {args: []string{bind, plainFlag}, status: ended, ca: true, want: true},
		"the manifests of a release without":     {args: []string{bind, "--forward-plain-http"}, want: true},
		"went back to a release without":         {args: []string{bind, "--forward-plain-http"}, status: ended, ca: true, want: true},
		"manifests of one's own, ready":          {args: []string{bind}, status: `{"replicas":1,"readyReplicas":1}`, want: true},
		"manifests of one's own, were ready":     {args: []string{bind}, status: ended, want: true},
		"no arguments at all, and it never came": {},
		"refuses, and its CA was deleted":        {args: []string{bind, plainFlag + "=false"}, status: ended},
		"refuses by the environment":             {args: []string{bind}, env: []map[string]any{variable("false")}, status: ended},
		"answers by the environment":             {args: []string{bind}, env: []map[string]any{variable("true")}, ca: true, want: true},
		"answers by the last variable":           {args: []string{bind}, env: []map[string]any{variable("f"), variable("T")}, ca: true, want: true},
		"a variable from elsewhere":              {args: []string{bind}, env: []map[string]any{elsewhere}, status: ended},
		"the flag goes before the variable":      {args: []string{plainFlag + "=false"}, env: []map[string]any{variable("true")}, ca: true},
		"answers by a value":                     {args: []string{plainFlag + "=true", bind}, status: ended, ca: true, want: true},
		"answers by a short value":               {args: []string{plainFlag + "=1"}, ca: true, want: true},
		"the last flag counts, on":               {args: []string{plainFlag + "=false", bind, plainFlag}, ca: true, want: true},
		"the last flag counts, off":              {args: []string{plainFlag, plainFlag + "=0"}, ca: true},
		"a value that is none":                   {args: []string{plainFlag + "=yes"}, status: ended},
		"another flag":                           {args: []string{plainFlag + "s=true"}, status: ended, ca: true},
		"a release without, and the variable":    {args: []string{"--forward-plain-http"}, env: []map[string]any{variable("false")}, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			if _, first := map[string]bool{
				"refuses": true, "answers": true, "the manifests of a release without": true, "answers by the environment": true,
			}[name]; !first {
				controlplane.TakesLong(t)
			}
			c := &clusterOf{c.ControlPlane, t, c.root, c.kubeconfig}
			c.runs(test.args, test.env, test.status, test.ca)
			for way, got := range map[string]bool{
				"helm":      c.plainIn(c.tryHelm()),
				"bcsnetctl": c.plainIn(c.bcsnetctl("install", "--dry-run=client", "--yes", "-o", "yaml")),
			} {
				if got != test.want {
					t.Errorf("%s: plain HTTP of other machines is answered: %t, want %t", way, got, test.want)
				}
			}
		})
	}
	for runs, on := range map[string]bool{"=false": true, "=true": false} {
		c.runs([]string{plainFlag + runs}, nil, ended, true)
		asked := fmt.Sprintf("=%t", on)
		if c.plainIn(c.tryHelm("--set", "plainHTTP"+asked)) != on ||
			c.plainIn(c.bcsnetctl("install", "--dry-run=client", "--yes", "-o", "yaml", plainFlag+asked)) != on {
			t.Errorf("%s%s: it is not so although that is asked for", plainFlag, asked)
		}
	}
}

// runs makes the Deployment in the cluster what some controller would be: with arguments, variables, a status, and a
// CA or none.
func (c *clusterOf) runs(args []string, env []map[string]any, status string, ca bool) {
	c.t.Helper()
	const container = "/spec/template/spec/containers/0/"
	patch, err := json.Marshal([]map[string]any{
		{"op": "add", "path": container + "args", "value": append([]string{}, args...)},
		{"op": "add", "path": container + "env", "value": append([]map[string]any{}, env...)},
	})
	if err != nil {
		c.t.Fatal(err)
	}
	if status == "" {
		status = "{}"
	}
	calls := [][]string{
		{"patch", "deployment", controlplane.ControllerName, "--type=json", "-p", string(patch)},
		{"patch", "deployment", controlplane.ControllerName, "--subresource=status", "--type=json", "-p",
			`[{"op":"replace","path":"/status","value":` + status + `}]`},
		{"delete", "configmap", controlplane.ControllerName + "-ca", "--ignore-not-found"},
	}
	if ca {
		calls = append(calls, []string{"create", "configmap", controlplane.ControllerName + "-ca"})
	}
	for _, call := range calls {
		call = append([]string{"-n", controlplane.SystemNamespace}, call...)
		if out, err := c.Kubectl(c.t.Context(), call...).CombinedOutput(); err != nil {
			c.t.Fatalf("kubectl %v: %v: %s", call, err, out)
		}
	}
}
