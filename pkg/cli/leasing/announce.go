package leasing

import (
	"slices"
	"strings"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
)

// MaxLines bounds the leases that are listed before a question.
const MaxLines = 20

// Ending is a lease that will be released, as the user reads it.
type Ending struct {
	Text string
	// Grave: somebody may use the address. Loser is the live pod that loses it; may be empty.
	Grave bool
	Loser string
}

// Announce lists the leases that will be released. After MaxLines it counts them, but still names all live pods: nobody
// loses an address without being named.
func Announce(s *app.App, all []Ending) {
	for _, e := range all[:min(len(all), MaxLines)] {
		if e.Grave {
			s.Say.Warn("%s", e.Text)
		} else {
			s.Say.Start("%s", e.Text)
		}
	}
	more := len(all) - MaxLines
	if more <= 0 {
		return
	}
	s.Say.Note("  and %s", humanize.Plural(more, "more lease"))
	var losers []string
	for _, e := range all[MaxLines:] {
		if e.Loser != "" && !slices.Contains(losers, e.Loser) {
			losers = append(losers, e.Loser)
		}
	}
	if n := len(losers); n > 0 {
		s.Say.Warn("among them addresses of %s: %s", humanize.OneOr(n, "a pod that lives", humanize.Plural(n, "pod")+
			" that live"), strings.Join(losers, ", "))
	}
}
