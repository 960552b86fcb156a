package cli

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/printers"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/words"
)

// goal is what --for asks for: a condition of pools, or one of the words below.
type goal struct {
	condition string
	want      bool
	// word is how it is then, unmet how it is before.
	word, unmet string
}

const (
	goalReleased = "released"
	goalDeleted  = "deleted"
)

// goals are the values of --for that the help names.
func goals() []string {
	return []string{"ready", "exhausted=false", "draining=false", "overlap=false", goalReleased, goalDeleted}
}

func parseGoal(text string) (goal, error) {
	word, value, given := strings.Cut(strings.ToLower(text), "=")
	conditions := []string{v1.ConditionReady, v1.ConditionExhausted, v1.ConditionOverlap, v1.ConditionDraining}
	i := slices.IndexFunc(conditions, func(c string) bool { return strings.EqualFold(c, word) })
	switch {
	case text == "":
		return goal{}, usagef("--for is missing: say what to wait for")
	case i >= 0 && (!given || value == "true"):
		return goal{condition: conditions[i], want: true, word: word, unmet: "not " + word}, nil
	case i >= 0 && value == "false":
		return goal{condition: conditions[i], word: "not " + word, unmet: "still " + word}, nil
	case !given && (word == goalReleased || word == goalDeleted):
		return goal{word: word}, nil
	}
	f := usagef("--for %q is nothing that one can wait for", text)
	if near := nearest(text, goals()); near != "" {
		return goal{}, f.withHint("did you mean %s? There are: %s", near, strings.Join(goals(), ", "))
	}
	return goal{}, f.withHint("there are: %s", strings.Join(goals(), ", "))
}

// met says whether a pool's condition is as it should be, and how it is else. A status about an older spec
// says nothing.
func (g goal) met(p *v1.BCSNetPool) (ok bool, how string) {
	c := meta.FindStatusCondition(p.Status.Conditions, g.condition)
	switch {
	case p.Status.ObservedGeneration == 0 || c == nil:
		return false, waitsForFirstLook
	case p.Status.ObservedGeneration < p.Generation:
		return false, waitsForSecondLook
	case (c.Status == metav1.ConditionTrue) == g.want:
		return true, ""
	}
	return false, c.Reason + ": " + printers.EscapeTerminal(c.Message)
}

const (
	waitsForFirstLook  = "no controller has looked at the pool yet"
	waitsForSecondLook = "the controller has not seen the last change of the pool yet"
)

// inUse says how many addresses of a pool are in use, and where.
func inUse(set map[string]ipam.Lease) string {
	held := make([]ipam.Lease, 0, len(set))
	for _, l := range set {
		held = append(held, l)
	}
	return words.Plural(len(held), "address") + " in use: " + perHost(held)
}

// holding says how an address is that is not free.
func holding(l ipam.Lease) string {
	switch {
	case l.State == ipam.Reserved:
		return "it is reserved"
	case l.Host.IsValid():
		return "it is in use by " + printers.EscapeTerminal(l.Who()) + " on " + l.Host.String()
	default:
		return "it is in use by " + printers.EscapeTerminal(l.Who())
	}
}
