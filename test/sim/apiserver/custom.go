package apiserver

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/bcsnet/bcsnet/config"
)

// custom is the part of a CRD about its kind.
type custom struct {
	schema     schema
	selectable []string // paths of fields
	rules      []rule
}

// definition has the fields of a CRD that are read.
type definition struct {
	Kind string `json:"kind"`
	Spec struct {
		Group string `json:"group"`
		Names struct {
			Plural string `json:"plural"`
			Kind   string `json:"kind"`
		} `json:"names"`
		Scope    string `json:"scope"`
		Versions []struct {
			Name   string `json:"name"`
			Schema struct {
				OpenAPIV3Schema schema `json:"openAPIV3Schema"`
			} `json:"schema"`
			SelectableFields []struct {
				JSONPath string `json:"jsonPath"`
			} `json:"selectableFields"`
			Subresources struct {
				Status *struct{} `json:"status"`
			} `json:"subresources"`
		} `json:"versions"`
	} `json:"spec"`
}

// customKinds returns the kinds of the shipped CRDs.
func customKinds() (all []*kind, err error) {
	files, err := fs.Glob(config.Files, "crd/*.yaml")
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		body, err := config.Files.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var d definition
		if err := yaml.Unmarshal(body, &d); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if d.Kind != "CustomResourceDefinition" {
			continue
		}
		v := d.Spec.Versions[0]
		k := &kind{
			group: d.Spec.Group, version: v.Name, resource: d.Spec.Names.Plural, kind: d.Spec.Names.Kind,
			namespaced: d.Spec.Scope == "Namespaced", status: v.Subresources.Status != nil,
			custom: &custom{schema: v.Schema.OpenAPIV3Schema, rules: rules()[d.Spec.Names.Kind]},
		}
		for _, f := range v.SelectableFields {
			k.custom.selectable = append(k.custom.selectable, strings.TrimPrefix(f.JSONPath, "."))
		}
		all = append(all, k)
	}
	return all, nil
}

// admit sets defaults, drops fields that are not in the schema, and refuses invalid values.
func (t target) admit(data map[string]any, old *object) *problem {
	var wrong []complaint
	if old != nil && old.deleting() {
		had := fmt.Sprint(finalizers(old.meta()))
		for _, f := range finalizers(meta(data)) {
			if !strings.Contains(had, fmt.Sprint(f)) {
				new := complaint{
					"FieldValueForbidden", "metadata.finalizers",
					"no new finalizers can be added if the object is being deleted",
				}
				wrong = append(wrong, new, new) // a custom object is validated twice
			}
		}
	}
	if c := t.kind.custom; c != nil {
		c.schema.prune(data, true)
		c.schema.fill(data)
		wrong = append(wrong, c.schema.check("", data)...)
		unchecked := slices.ContainsFunc(wrong, func(c complaint) bool {
			return c.reason != "FieldValueInvalid" &&
				c.reason != "FieldValueForbidden"
		})
		var before map[string]any
		if old != nil {
			before = old.data
		}
		if unchecked { // a value of the wrong type or size is not examined further
			wrong = append(wrong, complaint{
				"FieldValueInvalid", "<nil>", "some validation rules were not checked because the object was invalid",
			})
			return t.invalid(wrong)
		}
		for _, r := range c.rules {
			wrong = append(wrong, r(data, before)...)
		}
	}
	if len(wrong) > 0 {
		return t.invalid(wrong)
	}
	return nil
}
