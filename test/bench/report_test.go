package main

import "testing"

func TestMerged(t *testing.T) {
	const old = "### A\n\n| 1 |\n\n### B\n\n| 2 |\n"
	for name, c := range map[string]struct{ old, fresh, want string }{
		"nothing there":       {"", old, old},
		"one in place":        {"2 cores.\n\n" + old, "### B\n\n| 3 |\n", "### A\n\n| 1 |\n\n### B\n\n| 3 |\n"},
		"another one":         {old, "### C\n\n| 3 |\n", old + "\n### C\n\n| 3 |\n"},
		"the title of a part": {old, "### A b\n\n| 3 |\n", old + "\n### A b\n\n| 3 |\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := merged(c.old, c.fresh); got != c.want {
				t.Errorf("got:\n%s\nwant:\n%s", got, c.want)
			}
		})
	}
}

func TestParts(t *testing.T) {
	if err := (settings{only: "floors,large"}).check(); err != nil {
		t.Error(err)
	}
	if (settings{only: "floors,lrage"}).check() == nil {
		t.Error("a part that there is not was taken")
	}
	if o := (settings{only: "floors,large"}); !o.wants("large") || o.wants("start") || !(settings{}).wants("start") {
		t.Error("wants the wrong parts")
	}
}
