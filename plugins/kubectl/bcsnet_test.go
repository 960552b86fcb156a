package main

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/template"

	semver "k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/yaml"
)

// plugin is a manifest as krew reads it: it refuses fields that it does not know.
type plugin struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Version          string     `json:"version"`
		Homepage         string     `json:"homepage"`
		ShortDescription string     `json:"shortDescription"`
		Description      string     `json:"description"`
		Caveats          string     `json:"caveats"`
		Platforms        []platform `json:"platforms"`
	} `json:"spec"`
}

type platform struct {
	URI      string `json:"uri"`
	Sha256   string `json:"sha256"`
	Bin      string `json:"bin"`
	Selector struct {
		MatchLabels map[string]string `json:"matchLabels"`
	} `json:"selector"`
	Files []struct {
		From string `json:"from"`
		To   string `json:"to"`
	} `json:"files"`
}

// release fills the manifest in as the release tool of krew does.
func release(t *testing.T, text, tag string) plugin {
	t.Helper()
	functions := template.FuncMap{"addURIAndSha": func(address, tag string) (string, error) {
		var b strings.Builder
		inner, err := template.New("uri").Parse(address)
		if err == nil {
			err = inner.Execute(&b, map[string]string{"TagName": tag})
		}
		return fmt.Sprintf("uri: %s\n    sha256: %s", &b, strings.Repeat("0a", 32)), err
	}}
	manifest, err := template.New("bcsnet.yaml").Funcs(functions).Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := manifest.Execute(&b, map[string]string{"TagName": tag}); err != nil {
		t.Fatal(err)
	}
	var p plugin
	if err := yaml.UnmarshalStrict([]byte(b.String()), &p); err != nil {
		t.Fatalf("%v in:\n%s", err, &b)
	}
	return p
}

// TestKrewManifest checks the manifest by the rules of krew's index.
func TestKrewManifest(t *testing.T) {
	text, err := os.ReadFile("bcsnet.yaml")
	if err != nil {
		t.Fatal(err)
	}
	p := release(t, string(text), "v1.2.3")
	if p.APIVersion != "krew.googlecontainertools.github.com/v1alpha2" || p.Kind != "Plugin" ||
		p.Metadata.Name != "bcsnet" {
		t.Errorf("it is %s %s %q", p.APIVersion, p.Kind, p.Metadata.Name)
	}
	if _, err := semver.ParseSemantic(p.Spec.Version); err != nil || !strings.HasPrefix(p.Spec.Version, "v") {
		t.Errorf("version %q: %v", p.Spec.Version, err)
	}
	if n := len(p.Spec.ShortDescription); n == 0 || n > 50 || strings.ContainsAny(p.Spec.ShortDescription, "\n.") {
		t.Errorf("short description %q", p.Spec.ShortDescription)
	}
	if p.Spec.Homepage == "" || p.Spec.Description == "" || len(p.Spec.Platforms) == 0 {
		t.Errorf("something is empty: %+v", p.Spec)
	}
	seen := map[string]bool{}
	for _, one := range p.Spec.Platforms {
		checkPlatform(t, one, seen)
	}
}

func checkPlatform(t *testing.T, p platform, seen map[string]bool) {
	t.Helper()
	labels := p.Selector.MatchLabels
	if keys := slices.Sorted(maps.Keys(labels)); !slices.Equal(keys, []string{"arch", "os"}) {
		t.Errorf("the selector has %v", keys)
	}
	name := labels["os"] + "_" + labels["arch"]
	if seen[name] {
		t.Errorf("%s is there twice", name)
	}
	seen[name] = true
	if want := "/v1.2.3/kubectl-bcsnet_" + name + ".tar.gz"; !strings.HasPrefix(p.URI, "https://") ||
		!strings.HasSuffix(p.URI, want) {
		t.Errorf("%s comes from %s, want an end of %s", name, p.URI, want)
	}
	if !regexp.MustCompile(`^[a-f0-9]{64}$`).MatchString(p.Sha256) {
		t.Errorf("%s has the checksum %q", name, p.Sha256)
	}
	var files []string
	for _, f := range p.Files {
		if f.To != "." {
			t.Errorf("%s puts %s into %s", name, f.From, f.To)
		}
		files = append(files, f.From)
	}
	if p.Bin != "kubectl-bcsnet" || !slices.Equal(files, []string{"kubectl-bcsnet", "kubectl_complete-bcsnet"}) {
		t.Errorf("%s runs %s out of %v", name, p.Bin, files)
	}
}
