package httpapi

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/go-cmp/cmp"

	galaxyrest "github.com/bcsnet/bcsnet/pkg/compat/galaxy/rest"
	"github.com/bcsnet/bcsnet/pkg/httpapi/wire"
	"github.com/bcsnet/bcsnet/pkg/ipam"
)

func document(t *testing.T) *openapi3.T {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromData(openAPI())
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// The document is valid, and its examples fit its schemas.
func TestOpenAPIIsValid(t *testing.T) {
	if err := document(t).Validate(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// Every operation of the mux is in the document, with its query parameters and body, and none more.
func TestOpenAPIHasTheRoutes(t *testing.T) {
	type operation struct {
		Query []string
		Body  bool
	}
	s := newFixture(t).Service
	want, got := map[string]operation{}, map[string]operation{}
	for _, r := range slices.Concat(s.routes(), s.galaxyRoutes()) {
		want[r.method+" "+r.path+" "+r.name] = operation{slices.Sorted(slices.Values(r.query)), r.hasBody}
	}
	for path, op := range s.extenderRoutes() {
		want[http.MethodPost+" "+path+" "+op.name] = operation{Body: true}
	}
	for path := range s.pages() {
		name := strings.NewReplacer("/", "", ".json", "").Replace(path)
		want[http.MethodGet+" "+path+" "+name] = operation{}
	}
	for path, item := range document(t).Paths.Map() {
		for method, o := range item.Operations() {
			var query []string
			for _, p := range slices.Concat(item.Parameters, o.Parameters) {
				if p.Value.In == openapi3.ParameterInQuery {
					query = append(query, p.Value.Name)
				}
			}
			slices.Sort(query)
			got[method+" "+path+" "+o.OperationID] = operation{query, o.RequestBody != nil}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("operations (-mux +document):\n%s", diff)
	}
}

// The properties of a schema are the JSON fields of its Go type, of the same kind; what is always there
// is required.
func TestOpenAPIHasTheFields(t *testing.T) {
	doc := document(t)
	for name, v := range map[string]any{
		"Envelope": wire.Envelope{}, "AllocateRequest": wire.AllocateRequest{}, "ReleaseRequest": wire.ReleaseRequest{},
		"ReleaseAddressRequest": wire.ReleaseAddressRequest{}, "Allocation": wire.Allocation{}, "Address": wire.Address{}, "Route": wire.Route{},
		"DNS": wire.DNS{}, "Release": wire.Release{}, "Lease": wire.Lease{}, "LeaseList": wire.LeaseList{},
		"Attachment": wire.Attachment{}, "GCRequest": wire.GCRequest{}, "GCResult": wire.GCResult{}, "ConflictRequest": wire.ConflictRequest{},
		"ConflictResult": wire.ConflictResult{}, "Conflict": wire.Conflict{}, "SecondAttachment": wire.SecondAttachment{},
		"Versions": Versions{}, "ReplicaInfo": ReplicaInfo{}, "ThisReplica": ThisReplica{}, "LeaderInfo": LeaderInfo{}, "Forwarding": Forwarding{},
		"GalaxyResponse": galaxyrest.Response{}, "FloatingIP": galaxyrest.FloatingIP{}, "ListIPResponse": galaxyrest.ListIPResponse{}, "OwnedIP": galaxyrest.OwnedIP{},
		"ReleaseIPRequest": galaxyrest.ReleaseIPRequest{}, "ReleaseIPResponse": galaxyrest.ReleaseIPResponse{}, "SetPoolRequest": galaxyrest.SetPoolRequest{},
		"SharedPool": galaxyrest.SharedPool{}, "GetPoolResponse": galaxyrest.GetPoolResponse{}, "UpdatePoolResponse": galaxyrest.UpdatePoolResponse{},
	} {
		t.Run(name, func(t *testing.T) {
			ref := doc.Components.Schemas[name]
			if ref == nil {
				t.Fatal("there is no such schema")
			}
			properties, required := map[string]string{}, []string{}
			flatten(ref.Value, properties, &required)
			want, always := map[string]string{}, []string{}
			goFields(reflect.TypeOf(v), want, &always)
			if diff := cmp.Diff(want, properties); diff != "" {
				t.Errorf("properties (-Go +document):\n%s", diff)
			}
			if strings.HasSuffix(name, "Request") || name == "Attachment" {
				return // which fields a request needs depends on the others
			}
			slices.Sort(required)
			slices.Sort(always)
			if diff := cmp.Diff(always, required); diff != "" {
				t.Errorf("required (-Go +document):\n%s", diff)
			}
		})
	}
}

// flatten collects the properties of a schema, its allOf included, with the kind of each.
func flatten(s *openapi3.Schema, properties map[string]string, required *[]string) {
	for name, p := range s.Properties {
		properties[name] = kindOf(p)
	}
	*required = append(*required, s.Required...)
	for _, part := range s.AllOf {
		flatten(part.Value, properties, required)
	}
}

func kindOf(p *openapi3.SchemaRef) string {
	switch types := p.Value.Type; {
	case types.Is("array"):
		return "array of " + kindOf(p.Value.Items)
	case types.Is("object"):
		return "object " + p.Ref[strings.LastIndex(p.Ref, "/")+1:]
	case types == nil:
		return "any"
	default:
		return strings.Join(types.Slice(), " ")
	}
}

// goFields collects the JSON fields of a struct the same way.
func goFields(t reflect.Type, fields map[string]string, always *[]string) {
	for f := range t.Fields() {
		if f.Anonymous {
			goFields(f.Type, fields, always)
			continue
		}
		name, option, _ := strings.Cut(f.Tag.Get("json"), ",")
		fields[name] = goKind(f.Type)
		if option != "omitempty" {
			*always = append(*always, name)
		}
	}
}

func goKind(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return goKind(t.Elem())
	case reflect.Slice:
		return "array of " + goKind(t.Elem())
	case reflect.Struct:
		return "object " + t.Name()
	case reflect.Interface:
		return "any"
	case reflect.Int:
		return "integer"
	case reflect.Bool:
		return "boolean"
	default:
		return t.Kind().String()
	}
}

func TestOpenAPIHasTheReasons(t *testing.T) {
	var want, got []string
	for _, i := range ipam.ReasonTable() {
		want = append(want, string(i.Reason))
	}
	for _, v := range document(t).Components.Schemas["Reason"].Value.Enum {
		got = append(got, v.(string))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("reasons (-ipam +document):\n%s", diff)
	}
}

// The bounds that the document names are those that the code has.
func TestOpenAPIHasTheBounds(t *testing.T) {
	limits := map[string]uint64{}
	for _, f := range slices.Concat(allocateFields(wire.AllocateRequest{}), releaseFields(wire.ReleaseRequest{}),
		releaseAddressFields(wire.ReleaseAddressRequest{}), gcFields(wire.GCRequest{}), conflictFields(wire.ConflictRequest{})) {
		limits[f.name] = uint64(f.limit)
	}
	doc := document(t)
	for _, name := range []string{"AllocateRequest", "ReleaseRequest", "ReleaseAddressRequest", "GCRequest", "ConflictRequest", "Attachment"} {
		for field, p := range doc.Components.Schemas[name].Value.Properties {
			if p.Value.Type.Is("array") {
				continue
			}
			if p.Value.MaxLength == nil || *p.Value.MaxLength != limits[field] {
				t.Errorf("%s.%s: maxLength differs from %d", name, field, limits[field])
			}
		}
	}
	limit := doc.Components.Parameters["Limit"].Value.Schema.Value
	if *limit.Max != maxPage || limit.Default != float64(defaultPage) {
		t.Errorf("limit: maximum %v, default %v", *limit.Max, limit.Default)
	}
	for name, says := range map[string]string{"SlowBody": "15 seconds", "LargeBody": "65536 bytes"} {
		if d := *doc.Components.Responses[name].Value.Description; !strings.Contains(d, says) {
			t.Errorf("%s: %q", name, d)
		}
	}
	if d := *doc.Paths.Find(wire.Prefix + "/gc").Post.Responses.Value("413").Value.Description; !strings.Contains(d,
		fmt.Sprint(maxAttachmentsBody)) {
		t.Errorf("a list of attachments: %q", d)
	}
	if n := doc.Components.Schemas["GCRequest"].Value.Properties["attachments"].Value.MaxItems; n == nil ||
		*n != wire.MaxAttachments {
		t.Error("attachments: another bound")
	}
	if d := *doc.Paths.Find("/v1/filter").Post.Responses.Value("413").Value.Description; !strings.Contains(d,
		fmt.Sprint(maxQuestion)) {
		t.Errorf("a question: %q", d)
	}
	if readTime.Seconds() != 15 || maxBody != 65536 {
		t.Errorf("the bounds are %s and %d bytes", readTime, maxBody)
	}
	statuses := slices.Sorted(maps.Keys(doc.Paths.Find(wire.Prefix).Post.Responses.Map()))
	if diff := cmp.Diff([]string{"200", "400", "401", "403", "408", "413", "415", "429", "500", "503"}, statuses); diff != "" {
		t.Errorf("statuses of POST (-want +got):\n%s", diff)
	}
}
