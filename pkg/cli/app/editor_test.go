package app

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// TestEditorNeedsTerminal: an editor that draws is not begun without a terminal; a program that edits by itself is.
func TestEditorNeedsTerminal(t *testing.T) {
	for name, c := range map[string]struct {
		kube, editor string
		want         bool
	}{
		"none is set: vi":                  {want: true},
		"one that draws":                   {editor: "vim", want: true},
		"by its path":                      {editor: "/usr/bin/nano", want: true},
		"kubectl's variable comes first":   {kube: "emacs", editor: "true", want: true},
		"blanks are vi":                    {editor: "  ", want: true},
		"a program":                        {editor: "true"},
		"a program with arguments":         {editor: `sed -i -e "s/a/b/"`},
		"a script":                         {kube: "/tmp/edit.sh", editor: "vi"},
		"one that draws, told not to draw": {editor: "vim -es +%s/a/b/ +wq"},
	} {
		t.Run(name, func(t *testing.T) {
			s := New(ProgramName, "v0", genericiooptions.NewTestIOStreamsDiscard())
			s.getenv = func(key string) string { return map[string]string{"KUBE_EDITOR": c.kube, "EDITOR": c.editor}[key] }
			if got := s.EditorNeedsTerminal(); got != c.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

func TestEditorArgs(t *testing.T) {
	for command, want := range map[string][]string{
		"vi":                  {"vi"},
		"code  --wait":        {"code", "--wait"},
		" ":                   {"vi"},
		`"/opt/my editor" -n`: {"sh", "-c", `"/opt/my editor" -n "$1"`, "sh"},
		`sed -i 's/a/b/'`:     {"sh", "-c", `sed -i 's/a/b/' "$1"`, "sh"},
	} {
		if diff := cmp.Diff(want, editorArgs(command)); diff != "" {
			t.Errorf("%q: %s", command, diff)
		}
	}
}
