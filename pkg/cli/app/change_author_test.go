package app

import (
	"fmt"
	"strings"
	"testing"
)

func TestCheckText(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "rack 7, Köln": "", strings.Repeat("x", 80): "",
		strings.Repeat("x", 81): "--reason is 81 bytes long: at most 80 are allowed",
		"a\nb":                  "--reason has characters that cannot be printed",
		"\x1b[31mred":           "--reason has characters that cannot be printed",
		"a\xff":                 "--reason has characters that cannot be printed",
	} {
		if got := fmt.Sprint(CheckText("--reason", text, 80)); got != want && (want != "" || got != "<nil>") {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
