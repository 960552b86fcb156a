package install

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestPages: by default there are no pages in a cluster. If they are on, they have no right and no token, and nothing
// of the controller changes.
func TestPages(t *testing.T) {
	t.Parallel()
	plain, err := template(t)
	if err != nil || strings.Contains(plain, "bcsnet-ui") {
		t.Fatalf("%v: there are pages that nobody asked for", err)
	}
	out, err := template(t, "--set", "ui.enabled=true,ui.tlsSecretName=web,ui.url=https://pools.example.com:8443,image.tag=v1,ui.prometheusUrl=http://prometheus:9090/p",
		"--set", "prometheusRule.enabled=true,apiServer.host=fd00::1,apiServer.port=6443")
	if err != nil {
		t.Fatal(out)
	}
	type object struct {
		Kind                         string
		Metadata                     struct{ Name string }
		AutomountServiceAccountToken *bool
		Subjects                     []struct{ Name string }
		Spec                         struct {
			Template struct {
				Spec struct {
					AutomountServiceAccountToken *bool
					Containers                   []struct {
						Image string
						Args  []string
					}
				}
			}
		}
	}
	kinds := map[string]object{}
	for document := range strings.SplitSeq(out, "\n---\n") {
		var o object
		if err := yaml.Unmarshal([]byte(document), &o); err != nil {
			t.Fatalf("%v in %s", err, document)
		}
		for _, s := range o.Subjects {
			if s.Name == "bcsnet-ui" {
				t.Errorf("%s %s gives the pages rights", o.Kind, o.Metadata.Name)
			}
		}
		if o.Metadata.Name == "bcsnet-ui" {
			kinds[o.Kind] = o
		}
	}
	if len(kinds) != 4 {
		t.Fatalf("there are %v", kinds)
	}
	of := kinds["Deployment"].Spec.Template.Spec
	for _, mounts := range []*bool{kinds["ServiceAccount"].AutomountServiceAccountToken, of.AutomountServiceAccountToken} {
		if mounts == nil || *mounts {
			t.Error("the pages have a token of their own")
		}
	}
	if c := of.Containers[0]; c.Image != "ghcr.io/bcsnet/bcsnetctl:v1" ||
		!strings.Contains(strings.Join(c.Args, " "), "--server=https://[fd00::1]:6443 ") ||
		!strings.Contains(strings.Join(c.Args, " "), "--url=https://pools.example.com:8443 --prometheus=http://prometheus:9090/p") {
		t.Errorf("the container is %+v", c)
	}
	for _, want := range []string{
		"page_url: https://pools.example.com:8443/pool/{{ $labels.pool }}", "page_url: https://pools.example.com:8443/problems",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no alert leads to %s", want)
		}
	}
}
