package netconf

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// documented returns the fields in the first table of a section of a page.
func documented(t *testing.T, page, heading string) (fields []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../../docs", page))
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(text), heading+"\n")
	if !ok {
		t.Fatalf("docs/%s has no %q", page, heading)
	}
	section, _, _ = strings.Cut(section, "\n#")
	for line := range strings.Lines(section) {
		cell, is := strings.CutPrefix(line, "| ")
		if !is {
			continue
		}
		cell, _, _ = strings.Cut(cell, "|")
		for i, part := range strings.Split(cell, "`") {
			if i%2 == 1 {
				fields = append(fields, part)
			}
		}
	}
	slices.Sort(fields)
	return fields
}

// TestFieldsAreDocumented: the tables of the section ipam and of config.json have all fields, and no others.
func TestFieldsAreDocumented(t *testing.T) {
	for page, headings := range map[string][2]string{
		"cni.md":    {"### The section `ipam`", "### config.json, ca.crt, token"},
		"zh/cni.md": {"### `ipam` 一节", "### config.json、ca.crt、token"},
	} {
		want := slices.Sorted(slices.Values(ownFields()))
		if got := documented(t, page, headings[0]); !slices.Equal(got, want) {
			t.Errorf("docs/%s has the fields %v of ipam, want %v", page, got, want)
		}
		// Whatever is no string is wrong in each of them, so that the error names all that ParseNode knows.
		var text []string
		fields := documented(t, page, headings[1])
		for _, field := range fields {
			text = append(text, `"`+field+`":{}`)
		}
		_, err := ParseNode([]byte("{" + strings.Join(text, ",") + "}"))
		for _, field := range fields {
			if err == nil || !strings.Contains(err.Error()+"\n", field+": ") {
				t.Errorf("docs/%s has the field %s of config.json, which is not read: %v", page, field, err)
			}
		}
		if len(fields) != 7 { // as many as Node has
			t.Errorf("docs/%s has %v of config.json", page, fields)
		}
	}
}
