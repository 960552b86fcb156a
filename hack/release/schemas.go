package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// schemas writes an archive of the JSON schemas of our kinds, which kubeconform and editors read. Their names are those
// of the public catalogues of CRDs: GROUP/KIND_VERSION.json.
func (r *release) schemas(context.Context) error {
	crds, err := filepath.Glob(filepath.Join(r.Root, "charts", "bcsnet", "files", "crd", "*.yaml"))
	if err != nil || len(crds) == 0 {
		return fmt.Errorf("there are no CRDs: %w", err)
	}
	var files []entry
	for _, path := range crds {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict(text, &crd); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		for _, v := range crd.Spec.Versions {
			name := filepath.Join(crd.Spec.Group, strings.ToLower(crd.Spec.Names.Kind)+"_"+v.Name+".json")
			from := filepath.Join(r.work, "schemas", name)
			if err := writeSchema(from, v.Schema.OpenAPIV3Schema); err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			files = append(files, entry{from, name, 0o644})
		}
	}
	return r.archive("bcsnet-schemas_"+r.Version+".tar.gz", files)
}

// writeSchema writes a CRD's schema as a JSON schema of draft 7.
func writeSchema(path string, s *apiextensionsv1.JSONSchemaProps) error {
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	var schema map[string]any
	if err := json.Unmarshal(text, &schema); err != nil {
		return err
	}
	closeObjects(schema)
	schema["$schema"] = "http://json-schema.org/draft-07/schema#"
	if text, err = json.MarshalIndent(schema, "", " "); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

// closeObjects refuses fields that a schema does not name, as the API server's strict validation does, and removes what
// only Kubernetes reads.
func closeObjects(v any) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			closeObjects(e)
		}
	case map[string]any:
		_, named := v["properties"].(map[string]any)
		_, others := v["additionalProperties"]
		if named && !others && v["x-kubernetes-preserve-unknown-fields"] != true {
			v["additionalProperties"] = false
		}
		for key, e := range v {
			if closeObjects(e); strings.HasPrefix(key, "x-kubernetes-") {
				delete(v, key)
			}
		}
	}
}
