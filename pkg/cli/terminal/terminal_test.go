package terminal

import (
	"bytes"
	"math"
	"testing"
)

func TestUsed(t *testing.T) {
	plain, ascii := Terminal{}, Terminal{Tty: true}
	utf8, color := Terminal{Tty: true, Utf8: true}, Terminal{Tty: true, Utf8: true, Color: true}
	for name, test := range map[string]struct {
		term        Terminal
		part, total int64
		want        string
	}{
		"a file has no bar":       {plain, 3, 10, "30%"},
		"ASCII":                   {ascii, 3, 10, "###------- 30%"},
		"UTF-8":                   {utf8, 3, 10, "███░░░░░░░ 30%"},
		"colour":                  {color, 3, 10, "\x1b[32m███\x1b[0m░░░░░░░ 30%"},
		"colour nearly full":      {color, 8, 10, "\x1b[33m████████\x1b[0m░░ 80%"},
		"colour full":             {color, 10, 10, "\x1b[31m██████████\x1b[0m 100%"},
		"empty":                   {utf8, 0, 10, "░░░░░░░░░░ 0%"},
		"a little is not nothing": {utf8, 1, 65536, "█░░░░░░░░░ <1%"},
		"nearly all is not all":   {utf8, 65535, 65536, "█████████░ 99%"},
		"no addresses":            {utf8, 0, 0, ""},
		"more than can be":        {plain, 12, 10, "120%"},
		"as many as there can be": {plain, 1, math.MaxInt64, "<1%"},
	} {
		if got := test.term.Used(test.part, test.total); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

func TestTerminal(t *testing.T) {
	env := func(values map[string]string) func(string) string {
		return func(name string) string { return values[name] }
	}
	for _, test := range []struct {
		env  map[string]string
		want bool
	}{
		{map[string]string{}, false},
		{map[string]string{"LANG": "en_US.UTF-8"}, true},
		{map[string]string{"LANG": "en_US.UTF-8", "LC_ALL": "C"}, false},
		{map[string]string{"LC_CTYPE": "C.utf8"}, true},
	} {
		if got := isUTF8(env(test.env)); got != test.want {
			t.Errorf("%v: UTF-8 is %v", test.env, got)
		}
	}
	if got := Of(&bytes.Buffer{}, env(map[string]string{})); got != (Terminal{}) {
		t.Errorf("a buffer is a terminal: %+v", got)
	}
}
