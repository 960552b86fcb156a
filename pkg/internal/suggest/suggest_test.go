package suggest

import (
	"testing"

	"pgregory.net/rapid"
)

func TestNearest(t *testing.T) {
	names := []string{"blue", "green", "10.0.0.11", "10.0.0.13", "a"}
	for word, want := range map[string]string{
		"bleu": "blue", "gren": "green", "10.0.0.31": "10.0.0.11", "aa": "a", "purple-orange": "", "": "",
	} {
		if got := Nearest(word, names); got != want {
			t.Errorf("%s: got %q, want %q", word, got, want)
		}
	}
}

func TestDistance(t *testing.T) {
	word := rapid.StringMatching(`[ab.]{0,6}`)
	rapid.Check(t, func(t *rapid.T) {
		a, b := word.Draw(t, "a"), word.Draw(t, "b")
		d := Distance(a, b)
		if d != Distance(b, a) || (d == 0) != (a == b) || d > max(len(a), len(b)) || d < max(len(a)-len(b), len(b)-len(a)) {
			t.Fatalf("distance of %q and %q is %d", a, b, d)
		}
	})
}
