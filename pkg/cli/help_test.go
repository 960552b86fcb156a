package cli

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

// TestHelpFits: what help says of each command fits a terminal of 80 columns. Examples are there to be copied, and may
// be longer.
func TestHelpFits(t *testing.T) {
	const columns = 80
	var look func(*cobra.Command)
	look = func(cmd *cobra.Command) {
		fits := func(line string) {
			if n := utf8.RuneCountInString(line); n > columns {
				t.Errorf("%s: %d columns: %s", cmd.CommandPath(), n, line)
			}
		}
		for line := range strings.SplitSeq(cmd.Long, "\n") {
			fits(line)
		}
		most := 0
		for _, c := range cmd.Commands() {
			most = max(most, c.NamePadding())
		}
		for _, c := range cmd.Commands() {
			if c.IsAvailableCommand() {
				fits("  " + c.Name() + strings.Repeat(" ", most-len(c.Name())) + " " + c.Short)
				look(c)
			}
		}
	}
	look(Reference())
}
