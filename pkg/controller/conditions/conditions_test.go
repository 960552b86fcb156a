package conditions

import "testing"

func TestClip(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "0123456789": "0123456789", "0123456789a": "0123456…", "012345ä89ab": "012345…",
	} {
		if got := Clip(in, 10); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
