package rest

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The models of the Swagger document have the fields of the types that are served; what it requires of an answer is
// always there.
func TestSwaggerHasTheFields(t *testing.T) {
	_, v1 := SwaggerDocuments("http://127.0.0.1:8090")
	raw, err := json.Marshal(v1)
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		BasePath string `json:"basePath"`
		Apis     []struct {
			Path       string `json:"path"`
			Operations []struct {
				Method     string `json:"method"`
				Parameters []struct {
					Name string `json:"name"`
				} `json:"parameters"`
			} `json:"operations"`
		} `json:"apis"`
		Models map[string]struct {
			Required   []string       `json:"required"`
			Properties map[string]any `json:"properties"`
		} `json:"models"`
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	if doc.BasePath != "http://127.0.0.1:8090" {
		t.Errorf("basePath is %s", doc.BasePath)
	}
	for model, v := range map[string]any{
		"api.ListIPResp": ListIPResponse{}, "api.FloatingIP": FloatingIP{}, "api.ReleaseIPResp": ReleaseIPResponse{}, "api.ReleaseIPReq": ReleaseIPRequest{},
		"api.GetPoolResp": GetPoolResponse{}, "api.Pool": SharedPool{}, "httputil.Resp": Response{}, "api.UpdatePoolResp": UpdatePoolResponse{},
	} {
		var has, always, told []string
		fieldsOf(reflect.TypeOf(v), &has, &always)
		for name := range doc.Models[model].Properties {
			if name != "content" || model == "api.ListIPResp" { // galaxy never fills the others
				told = append(told, name)
			}
		}
		slices.Sort(has)
		slices.Sort(told)
		if diff := cmp.Diff(told, has); diff != "" {
			t.Errorf("%s (-document +type):\n%s", model, diff)
		}
		for _, name := range doc.Models[model].Required {
			if !slices.Contains(always, name) {
				t.Errorf("%s: %s may be missing", model, name)
			}
		}
	}
	got := map[string][]string{}
	for _, api := range doc.Apis {
		for _, o := range api.Operations {
			names := []string{}
			for _, p := range o.Parameters {
				names = append(names, p.Name)
			}
			got[o.Method+" "+api.Path] = names
		}
	}
	want := map[string][]string{
		"GET /v1/ip": Parameters(), "POST /v1/ip": {"body"}, "GET /v1/pool/{name}": {"name"}, "DELETE /v1/pool/{name}": {"name"}, "POST /v1/pool": {"body"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("operations (-want +document):\n%s", diff)
	}
}

func fieldsOf(t reflect.Type, has, always *[]string) {
	for f := range t.Fields() {
		if f.Anonymous {
			fieldsOf(f.Type, has, always)
			continue
		}
		name, option, _ := strings.Cut(f.Tag.Get("json"), ",")
		if *has = append(*has, name); option == "" {
			*always = append(*always, name)
		}
	}
}
