package store

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// fill puts something else into every field of a struct that we write.
func fill(v reflect.Value, n *int) {
	*n++
	switch v.Kind() {
	case reflect.Struct:
		for _, field := range v.Fields() {
			fill(field, n)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			fill(v.Index(i), n)
		}
	case reflect.String:
		v.SetString(fmt.Sprintf("text %d", *n))
	case reflect.Int32:
		v.SetInt(int64(*n))
	case reflect.Bool:
		v.SetBool(true)
	default:
		panic(v.Kind())
	}
}

// everything is an object with all fields that we write, as the API server stores it.
func everything(t *testing.T) []byte {
	t.Helper()
	o := v1.BCSNetIP{TypeMeta: metav1.TypeMeta{APIVersion: v1.GroupVersion.String(), Kind: "BCSNetIP"},
		ObjectMeta: metav1.ObjectMeta{
			Name: "10.0.0.9", ResourceVersion: "7", UID: "u", Generation: 3,
			CreationTimestamp: metav1.NewTime(time.Unix(1e9, 0)),
			Finalizers:        []string{v1.HeldFinalizer},
			Labels:            map[string]string{v1.MigratingLabel: "true"},
			ManagedFields: []metav1.ManagedFieldsEntry{{
				Manager: "m", FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"v:\"a]}\"":{},"b\\":{}}}`),
			}},
		}}
	n := 0
	fill(reflect.ValueOf(&o.Spec).Elem(), &n)
	fill(reflect.ValueOf(&o.Status).Elem(), &n)
	body, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// What we write is read in one pass, every field of it.
func TestFastDecode(t *testing.T) {
	body := everything(t)
	var got, want v1.BCSNetIP
	if !fastDecode(body, &got) {
		t.Fatalf("was not read: %s", body)
	}
	if foreign, err := newDecoder(json.NewDecoder(bytes.NewReader(body))).decode(&want); err != nil || foreign {
		t.Fatal(foreign, err)
	}
	// What nobody reads is passed over.
	want.UID, want.Generation, want.CreationTimestamp, want.ManagedFields = "", 0, metav1.Time{}, nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-JSON package +in one pass:\n%s", diff)
	}
}

func TestFastDecodeLeaves(t *testing.T) {
	for name, body := range map[string]string{
		"a label":                     `{"metadata":{"labels":{"a":"b"}}}`,
		"an unknown field":            `{"status":{"more":1}}`,
		"a field in capitals":         `{"status":{"Host":"10.0.0.1"}}`,
		"null":                        `{"status":{"host":null}}`,
		"an escape":                   `{"status":{"podName":"\u0041"}}`,
		"other than ASCII":            `{"status":{"history":[{"reason":"für"}]}}`,
		"a deletion":                  `{"metadata":{"deletionTimestamp":"2026-01-02T03:04:05Z"}}`,
		"a fraction":                  `{"spec":{"mask":1.5}}`,
		"a negative number":           `{"spec":{"mask":-1}}`,
		"a large number":              `{"spec":{"mask":4294967296}}`,
		"a leading zero":              `{"spec":{"mask":01}}`,
		"another type":                `{"spec":{"pool":1}}`,
		"a comma too many":            `{"spec":{"pool":"a",}}`,
		"a second value":              `{} {}`,
		"no end":                      `{"spec":{"pool":"a"}`,
		"no end of a string":          `{"spec":{"pool":"a`,
		"managedFields of one":        `{"metadata":{"managedFields":{}}}`,
		"a second attachment twice":   `{"status":{"secondAttachment":{},"secondAttachment":{}}}`,
		"a second attachment of more": `{"status":{"secondAttachment":{"more":1}}}`,
		"no second attachment":        `{"status":{"secondAttachment":null}}`,
		"a label beside ours":         `{"metadata":{"labels":{"` + v1.MigratingLabel + `":"true","a":"b"}}}`,
		"a history twice":             `{"status":{"history":[{}],"history":[]}}`,
		"nothing":                     ``,
	} {
		t.Run(name, func(t *testing.T) {
			if o := (v1.BCSNetIP{}); fastDecode([]byte(body), &o) {
				t.Errorf("%s is read as %+v", body, o)
			}
		})
	}
}

// A list is the same in whatever pieces it comes, and a part of it is an error.
func TestReadListInPieces(t *testing.T) {
	large := strings.Replace(string(everything(t)), "text 1", strings.Repeat("x", 3*firstBuffer), 1)
	body := []byte(`{"items": [` + string(everything(t)) + ` , ` + large + `,` + strangeObject +
		`], "metadata" : {"continue":"c","resourceVersion":"9"}}` + "\n")
	read := func(r io.Reader) (all []lease.Lease, meta metav1.ListMeta, err error) {
		meta, err = readList(r, func(l lease.Lease) error { all = append(all, l); return nil })
		return all, meta, err
	}
	want, meta, err := read(bytes.NewReader(body))
	if err != nil || len(want) != 3 || meta.Continue != "c" || !want[2].Foreign {
		t.Fatalf("%d leases, %+v, %v", len(want), meta, err)
	}
	got, again, err := read(iotest.OneByteReader(bytes.NewReader(body)))
	if diff := cmp.Diff(want, got, compareAddrs); err != nil || again.Continue != "c" || diff != "" {
		t.Errorf("byte by byte: %+v, %v\n%s", again, err, diff)
	}
	for cut := 0; cut < len(body)-2; cut += 1 + cut/7 {
		if _, _, err := read(bytes.NewReader(body[:cut])); err == nil {
			t.Errorf("%d of %d bytes pass for the list", cut, len(body))
		}
	}
	for _, wrong := range []string{
		`{"items":[{},]}`, `{"items":[],}`, `{"items":[{}{}]}`, `{"items":{}}`, `{"items":[1]}`, `{"items":[`,
	} {
		if _, _, err := read(strings.NewReader(wrong)); err == nil {
			t.Errorf("%s passes for a list", wrong)
		}
	}
}

// Whatever the JSON package reads as an object without foreign fields is the same lease read in one pass, where
// that reads it at all.
func FuzzFastDecode(f *testing.F) {
	for _, seed := range []string{
		plainObject, strangeObject, `{}`, `null`,
		`{"status":{"history":[{"holder":"a","since":"b"}],"fixed":true,"setSize":2}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var fast, slow v1.BCSNetIP
		if !fastDecode(body, &fast) {
			return
		}
		foreign, err := newDecoder(json.NewDecoder(bytes.NewReader(body))).decode(&slow)
		if err != nil { // in what nobody reads
			return
		}
		got, gotErr := Lease(&fast, false)
		want, wantErr := Lease(&slow, foreign)
		if diff := cmp.Diff(want, got, compareAddrs); diff != "" || (gotErr == nil) != (wantErr == nil) {
			t.Errorf("%s\n-JSON package +in one pass:\n%s%v, %v", body, diff, wantErr, gotErr)
		}
	})
}
