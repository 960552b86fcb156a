package pool

import (
	"testing"

	"github.com/bcsnet/bcsnet/pkg/cli/terminal"
)

func TestPaintDiff(t *testing.T) {
	const text = "--- a\n+++ b\n@@ -1 +1 @@\n same\n-old\n+new\n"
	plain, colored := terminal.Terminal{}, terminal.Terminal{Color: true}
	if got := paintDiff(plain, text); got != text {
		t.Errorf("without colour: %q", got)
	}
	const want = "\x1b[31m--- a\x1b[0m\n\x1b[32m+++ b\x1b[0m\n\x1b[36m@@ -1 +1 @@\x1b[0m\n " +
		"same\n\x1b[31m-old\x1b[0m\n\x1b[32m+new\x1b[0m\n"
	if got := paintDiff(colored, text); got != want {
		t.Errorf("got %q", got)
	}
}
