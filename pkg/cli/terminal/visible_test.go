package terminal

import (
	"bytes"
	"testing"
)

func TestVisible(t *testing.T) {
	red := Terminal{Color: true}.Paint(Red, "full")
	for text, want := range map[string]string{
		"": "", red + "\x1b[2J": red + `\u001b[2J`, "\x1b" + red + "\n": `\u001b` + red + `\n`, "a\x1b": `a\u001b`,
	} {
		if got := Visible(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// However a text is cut into parts, the same is written: colours if there are any, and nothing else that is not seen.
func TestWriter(t *testing.T) {
	const text = "köln\x1b[31m日本\x1b[0m\t\x1b[33;1mW\x1b[0m \x1b[2J\u202e\n\xff."
	for colors, want := range map[bool]string{
		true:  "köln\x1b[31m日本\x1b[0m\t\x1b[33;1mW\x1b[0m \\u001b[2J\\u202e\n\ufffd.",
		false: "köln\\u001b[31m日本\\u001b[0m\t\\u001b[33;1mW\\u001b[0m \\u001b[2J\\u202e\n\ufffd.",
	} {
		for step := 1; step <= len(text); step++ {
			var b bytes.Buffer
			w := NewWriter(&b, Terminal{Color: colors})
			for rest := text; rest != ""; {
				n := min(step, len(rest))
				if m, err := w.Write([]byte(rest[:n])); m != n || err != nil {
					t.Fatal(m, err)
				}
				rest = rest[n:]
			}
			if got := b.String(); got != want {
				t.Fatalf("in parts of %d: %q, want %q", step, got, want)
			}
			if Raw(w) != &b || Raw(&b) != &b {
				t.Fatal("the stream is another one")
			}
		}
	}
}
