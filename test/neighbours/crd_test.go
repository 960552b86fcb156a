package neighbours

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/yaml"

	"github.com/bcsnet/bcsnet/config"
)

// schema is the part of a definition's schema that kubectl explain shows.
type schema struct {
	Description          string
	Properties           map[string]schema
	Items                *schema
	AdditionalProperties *schema
}

// definition is the part of a CRD that is read here.
type definition struct {
	Spec struct {
		Names    struct{ Plural string }
		Versions []struct {
			AdditionalPrinterColumns []struct{ Name string }
			Schema                   struct {
				OpenAPIV3Schema schema `json:"openAPIV3Schema"`
			}
		}
	}
}

func definitions(t *testing.T) map[string]definition {
	t.Helper()
	all := map[string]definition{}
	files, err := config.Files.ReadDir("crd")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		var d definition
		if text := file(t, "config", "crd", f.Name()); yaml.Unmarshal([]byte(text), &d) == nil && d.Spec.Names.Plural != "" {
			all[d.Spec.Names.Plural] = d
		}
	}
	return all
}

// TestExplained: kubectl explain has a sentence for each field.
func TestExplained(t *testing.T) {
	var walk func(path string, s schema)
	walk = func(path string, s schema) {
		for name, p := range s.Properties {
			if p.Description == "" && name != "metadata" {
				t.Errorf("%s.%s has no description", path, name)
			}
			walk(path+"."+name, p)
		}
		for _, of := range []*schema{s.Items, s.AdditionalProperties} {
			if of != nil {
				walk(path+"[]", *of)
			}
		}
	}
	all := definitions(t)
	if len(all) != 4 {
		t.Fatalf("there are %d definitions", len(all))
	}
	for name, d := range all {
		walk(name, d.Spec.Versions[0].Schema.OpenAPIV3Schema)
	}
}

// TestK9s holds the files for k9s against our columns and commands, and two plugins never have one key for one kind.
func TestK9s(t *testing.T) {
	var views struct {
		Views map[string]struct {
			SortColumn string   `json:"sortColumn"`
			Columns    []string `json:"columns"`
		} `json:"views"`
	}
	if err := yaml.UnmarshalStrict([]byte(file(t, "contrib", "k9s", "views.yaml")), &views); err != nil {
		t.Fatal(err)
	}
	all := definitions(t)
	for name, v := range views.Views {
		d, is := all[filepath.Base(name)]
		if !is {
			t.Errorf("%s is no kind of ours", name)
			continue
		}
		known := sets.New("NAME", "NAMESPACE", "AGE")
		for _, c := range d.Spec.Versions[0].AdditionalPrinterColumns {
			known.Insert(strings.ToUpper(c.Name))
		}
		by, _, _ := strings.Cut(v.SortColumn, ":")
		for _, c := range append(slices.Clone(v.Columns), by) {
			if !known.Has(c) {
				t.Errorf("%s has no column %s", name, c)
			}
		}
	}
	var plugins struct {
		Plugins map[string]struct {
			ShortCut, Description, Command string
			Scopes, Args                   []string
			Background                     bool
		} `json:"plugins"`
	}
	if err := yaml.UnmarshalStrict([]byte(file(t, "contrib", "k9s", "plugins.yaml")), &plugins); err != nil {
		t.Fatal(err)
	}
	keys := map[string]string{}
	for name, p := range plugins.Plugins {
		var words []string
		for w := range strings.FieldsSeq(p.Args[len(p.Args)-1]) {
			if strings.ContainsAny(w, `"-`) {
				break
			}
			words = append(words, w)
		}
		file(t, "docs", "reference", "cli", strings.Join(words, "-")+".md") // which there is for each command
		for _, scope := range p.Scopes {
			if key := fmt.Sprint(p.ShortCut, scope); keys[key] != "" {
				t.Errorf("%s and %s have one key for %s", name, keys[key], scope)
			}
			keys[fmt.Sprint(p.ShortCut, scope)] = name
			if _, is := all[scope]; !is && scope != "pods" {
				t.Errorf("%s is for %s", name, scope)
			}
		}
	}
}
