package hostnic

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/bcsnet/bcsnet/pkg/ipam/block"
)

// sample is the document's.
const sample = `{
  "Default": ["vxnet-xxxxxxxx"],
  "test": ["4100-172-16-3-0-26", "4100-172-16-3-128-26"],
  "abc": ["4100-172-16-3-64-26", "4100-172-16-3-192-26"]
}
`

// brief writes a mapping in one line.
func brief(m Mapping) string {
	var parts []string
	for _, b := range m.Blocks {
		addrs := "?"
		if b.Addrs.IsValid() {
			addrs = b.Addrs.String()
		}
		parts = append(parts, fmt.Sprintf("%s.%d=%s", b.Namespace, b.Place, addrs))
	}
	if m.Defaults != nil {
		parts = append(parts, "default="+strings.Join(m.Defaults, ","))
	}
	if m.AutoAssign {
		parts = append(parts, "auto")
	}
	return strings.Join(parts, " ")
}

func TestRead(t *testing.T) {
	long := strings.Repeat("x", 200)
	for name, tc := range map[string]struct{ document, want, err string }{
		"the document's": {sample,
			"test.0=172.16.3.0/26 test.1=172.16.3.128/26 abc.0=172.16.3.64/26 abc.1=172.16.3.192/26 default=vxnet-xxxxxxxx", ""},
		"empty":               {"{}", "", ""},
		"a list that is null": {`{"a":null,"b":[]}`, "", ""},
		"our own names": {`{"a":["vxnet-a-172-16-3-0-26","net6-2001-0db8-0000-0000-0000-0000-0000-0100-120"]}`,
			"a.0=172.16.3.0/26 a.1=2001:db8::100/120", ""},
		"names without addresses": {`{"a":["vxnet-xxxxxxxx","4100-172-16-3-0","4100-172-16-3-1-26","4100-172-16-300-0-26","4100-172-16-03-0-26","4100-172-16-3-0-33","-","172-16-3-0-26"]}`,
			"a.0=? a.1=? a.2=? a.3=? a.4=? a.5=? a.6=? a.7=172.16.3.0/26", ""},
		"twice in one list":             {`{"a":["1-10-0-0-0-26","1-10-0-0-64-26","2-10-0-0-0-26","1-10-0-0-0-26"]}`, "a.0=10.0.0.0/26 a.1=10.0.0.64/26", ""},
		"a namespace called default":    {`{"Default":["p"],"default":["1-10-0-0-0-26"]}`, "default.0=10.0.0.0/26 default=p", ""},
		"a default that has a CIDR":     {`{"Default":["p-10-0-0-0-26"],"a":["1-10-0-0-0-26"]}`, "a.0=10.0.0.0/26 default=p-10-0-0-0-26", ""},
		"a field of no consequence":     {"  {\n\t}\n ", "", ""},
		"a block of two namespaces":     {`{"a":["1-10-0-0-0-26"],"b":["1-10-0-0-0-26"]}`, "", "subnet 1-10-0-0-0-26 was assigned to namespaces (a b) which was not allowed"},
		"a block under two names":       {`{"a":["1-10-0-0-0-26"],"b":["2-10-0-0-0-26"]}`, "", "subnet 2-10-0-0-0-26 was assigned to namespaces (a b) which was not allowed"},
		"a pool of two namespaces":      {`{"a":["vxnet-x"],"b":["vxnet-x"]}`, "", "subnet vxnet-x was assigned to namespaces (a b) which was not allowed"},
		"a default that is taken":       {`{"a":["vxnet-x"],"Default":["vxnet-x"]}`, "", "subnet vxnet-x was assigned to namespaces (a Default) which was not allowed"},
		"no namespace":                  {`{"A_b":["1-10-0-0-0-26"]}`, "", `ipam format error: "A_b" is not the name of a namespace`},
		"an empty namespace":            {`{"":[]}`, "", `ipam format error: "" is not the name of a namespace`},
		"a long namespace":              {`{"` + long + `":[]}`, "", `ipam format error: "` + long[:80] + `…" is not the name of a namespace`},
		"an empty name":                 {`{"a":[""]}`, "", `ipam format error: "a" has an empty name in its list`},
		"a namespace twice":             {`{"a":["1-10-0-0-0-26"],"a":["1-10-0-0-64-26"]}`, "", `ipam format error: "a" is there twice`},
		"nothing":                       {"", "", "ipam format error: unexpected end of JSON input"},
		"null":                          {"null", "", "ipam format error: it is null; an empty mapping is {}"},
		"a list":                        {"[]", "", "ipam format error: it is not a JSON object of lists"},
		"a text":                        {`"a"`, "", "ipam format error: it is not a JSON object of lists"},
		"YAML":                          {"a: [b]", "", "ipam format error: invalid character 'a' looking for beginning of value"},
		"a text for a list":             {`{"a":"b"}`, "", `ipam format error: "a": json: cannot unmarshal string into Go value of type []string`},
		"a number in a list":            {`{"a":[1]}`, "", `ipam format error: "a": json: cannot unmarshal number into Go value of type string`},
		"cut off":                       {`{"a":["b"`, "", `ipam format error: "a": unexpected EOF`},
		"cut off behind a list":         {`{"a":["b"]`, "", "ipam format error: unexpected end of JSON input"},
		"text behind it":                {"{} {}", "", "ipam format error: there is text behind its JSON object"},
		"deep":                          {`{"a":` + strings.Repeat("[", 20000), "", `ipam format error: "a": invalid character '[' exceeded max depth`},
		"several wrong, and some right": {`{"a":["1-10-0-0-0-26"],"B":[],"b":["1-10-0-0-0-26","1-10-0-0-64-26"]}`, "", "ipam format error: \"B\" is not the name of a namespace\nsubnet 1-10-0-0-0-26 was assigned to namespaces (a b) which was not allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := Read(map[string]string{Key: tc.document})
			got := ""
			if err != nil {
				got = err.Error()
			}
			if got != tc.err {
				t.Errorf("%.200s:\n got %q\nwant %q", tc.document, got, tc.err)
			}
			if err == nil && brief(m) != tc.want {
				t.Errorf("%s:\n got %q\nwant %q", tc.document, brief(m), tc.want)
			}
		})
	}
	if _, err := Read(nil); err == nil || err.Error() != "ipam format error: there is no key ipam" {
		t.Errorf("without the key: %v", err)
	}
	for value, want := range map[string]bool{"on": true, "off": false, "": false, "ON": false, "true": false} {
		if m, err := Read(map[string]string{Key: "{}", AutoAssignKey: value}); err != nil || m.AutoAssign != want {
			t.Errorf("%s %q: %t, %v", AutoAssignKey, value, m.AutoAssign, err)
		}
	}
}

// TestReadMany: the largest document that a ConfigMap can hold, and one that is wrong all over.
func TestReadMany(t *testing.T) {
	lists := map[string][]string{}
	for i := range 16384 {
		ns := fmt.Sprintf("ns-%d", i%512)
		lists[ns] = append(lists[ns], fmt.Sprintf("4100-10-%d-%d-%d-28", i>>12, i>>4&255, i&15<<4))
	}
	document, err := json.Marshal(lists)
	if err != nil {
		t.Fatal(err)
	}
	m, err := Read(map[string]string{Key: string(document)})
	if err != nil || len(m.Blocks) != 16384 {
		t.Errorf("%d blocks, %v", len(m.Blocks), err)
	}
	lists = map[string][]string{}
	for i := range 100 {
		lists[fmt.Sprintf("ns-%d", i)] = []string{"x"}
	}
	document, err = json.Marshal(lists)
	if err != nil {
		t.Fatal(err)
	}
	_, err = Read(map[string]string{Key: string(document)})
	if lines := strings.Split(err.Error(), "\n"); len(lines) != 11 || lines[10] != "89 more are wrong" {
		t.Errorf("%v", err)
	}
}

// FuzzRead: what is accepted has each block once, and means the same when it is written with our own names.
func FuzzRead(f *testing.F) {
	f.Add(sample)
	f.Add(`{"a":["net6-2001-0db8-0000-0000-0000-0000-0000-0100-120","10-0-0-0-8"],"Default":null}`)
	f.Add(`{"a":["1-0-0-0-0-0"],"b":["-----","9-10-0-0-0-26"]}`)
	f.Fuzz(func(t *testing.T, document string) {
		m, err := Read(map[string]string{Key: document})
		if err != nil {
			if strings.TrimSpace(err.Error()) == "" {
				t.Fatal("an error without words")
			}
			return
		}
		owner := map[netip.Prefix]string{}
		again := map[string][]string{}
		for _, b := range m.Blocks {
			if b.Place != len(again[b.Namespace]) {
				t.Fatalf("%+v is number %d of its namespace", b, len(again[b.Namespace]))
			}
			name := b.Name
			if b.Addrs.IsValid() {
				if other, twice := owner[b.Addrs]; twice {
					t.Fatalf("%s is there twice, of %s and %s", b.Addrs, other, b.Namespace)
				}
				owner[b.Addrs] = b.Namespace
				name = block.Name("p", b.Addrs)
			}
			again[b.Namespace] = append(again[b.Namespace], name)
		}
		text, err := json.Marshal(again)
		if err != nil {
			t.Fatal(err)
		}
		same, err := Read(map[string]string{Key: string(text)})
		if err != nil {
			return // a name that looks like one of ours is there, too
		}
		diff := cmp.Diff(m.Blocks, same.Blocks, cmpopts.IgnoreFields(Block{}, "Name"),
			cmp.Comparer(func(a, b netip.Prefix) bool { return a == b }),
			cmpopts.SortSlices(func(a, b Block) bool {
				return a.Namespace < b.Namespace || a.Namespace == b.Namespace && a.Place < b.Place
			}))
		if diff != "" {
			t.Errorf("written again as %s:\n%s", text, diff)
		}
	})
}
