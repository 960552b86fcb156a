package humanize

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"
)

func TestVisible(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "web-0": "web-0", "köln 日本 🙂": "köln 日本 🙂",
		"a\x1b[2Jb": `a\u001b[2Jb`, "a\u202eb": `a\u202eb`, "a\u200bb\ufeff": `a\u200bb\ufeff`, "a\nb\tc\r": `a\nb\tc\u000d`,
		"\u009b31m": `\u009b31m`, "a\u2028b\u00a0": `a\u2028b\u00a0`, "\U000e0041": `\udb40\udc41`, "a\xff": "a\ufffd",
	} {
		if got := Visible(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	if got := VisibleLines("a\n\tb\x1b"); got != "a\n\tb\\u001b" {
		t.Errorf("%q", got)
	}
}

// Whatever the text, the result is seen as it is, and stays as it is; inside a JSON string it means the text.
func TestVisibleOfAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		got := Visible(text)
		if strings.ContainsFunc(got, func(c rune) bool { return !unicode.IsPrint(c) }) || Visible(got) != got {
			t.Fatalf("%q: %q", text, got)
		}
		encoded, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		var back string
		if err := json.Unmarshal([]byte(Visible(string(encoded))), &back); err != nil || back != text {
			t.Fatalf("%q comes back as %q: %v", text, back, err)
		}
	})
}
