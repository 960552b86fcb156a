package doctor

import (
	"bufio"
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/doctor"
)

// TestParagraph: many findings of one check are folded, a fix that all share stands once, and nothing that
// an object says reaches the terminal as a command.
func TestParagraph(t *testing.T) {
	findings := func(n int, fix string) (out []doctor.Finding) {
		for i := range n {
			f := doctor.Finding{
				Check: "x", Severity: doctor.Error, Object: doctor.Object{Kind: "ip", Name: fmt.Sprint(i)}, Cause: "held",
				Impact: "lost", Fix: fix,
			}
			if fix == "" {
				f.Fix = fmt.Sprint("bcsnetctl fix ", i)
			}
			out = append(out, f)
		}
		return out
	}
	rows := func(n int) (text string) {
		for i := range n {
			text += fmt.Sprintf("    ip/%d: held\n", i)
		}
		return text
	}
	evil := findings(1, "mend it")
	evil[0].Cause = "held by \x1b[2Jvm"
	for name, test := range map[string]struct {
		all      bool
		findings []doctor.Finding
		want     string
	}{
		"ten":          {false, findings(10, "mend it"), "x x: title\n" + rows(10) + "    impact: lost\n    fix: mend it\n\n"},
		"twelve":       {false, findings(12, "mend it"), "x x: title\n" + rows(10) + "    and 2 more: --all shows them\n    impact: lost\n    fix: mend it\n\n"},
		"all of them":  {true, findings(12, "mend it"), "x x: title\n" + rows(12) + "    impact: lost\n    fix: mend it\n\n"},
		"own commands": {false, findings(2, ""), "x x: title\n    ip/0: held\n        fix: kubectl bcsnet fix 0\n    ip/1: held\n        fix: kubectl bcsnet fix 1\n    impact: lost\n\n"},
		"an escape":    {false, evil, "x x: title\n    ip/0: held by \\u001b[2Jvm\n    impact: lost\n    fix: mend it\n\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			v := &verb{App: &app.App{Name: "kubectl bcsnet"}, all: test.all}
			b := bufio.NewWriter(&out)
			v.paragraph(b, "title", test.findings)
			if err := b.Flush(); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, out.String()); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if strings.Contains(out.String(), "\x1b") {
				t.Error("an escape gets through")
			}
		})
	}
}
