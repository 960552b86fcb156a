package wait

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/internal/suggest"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// goal is the value of --for: a condition of pools or claims, or one of the words below.
type goal struct {
	condition string
	want      bool
	// word describes the state that is waited for, unmet the opposite.
	word, unmet string
}

const (
	goalReleased = "released"
	goalDeleted  = "deleted"
)

// goals lists the values of --for for the help.
func goals() []string {
	return []string{
		"ready", "exhausted=false", "draining=false", "overlap=false", "preallocated", "conflict=false",
		"overlimit=false", goalReleased, goalDeleted,
	}
}

func poolConditions() []string {
	return []string{v1.ConditionReady, v1.ConditionExhausted, v1.ConditionOverlap, v1.ConditionDraining}
}

func claimConditions() []string {
	return []string{v1.ConditionReady, v1.ConditionPreallocated, v1.ConditionConflict, v1.ConditionOverLimit}
}

func parseGoal(text string) (goal, error) {
	word, value, given := strings.Cut(strings.ToLower(text), "=")
	conditions := append(poolConditions(), claimConditions()...)
	i := slices.IndexFunc(conditions, func(c string) bool { return strings.EqualFold(c, word) })
	switch {
	case text == "":
		return goal{}, app.Usagef("--for is missing: say what to wait for")
	case i >= 0 && (!given || value == "true"):
		is := adjective(conditions[i])
		return goal{condition: conditions[i], want: true, word: is, unmet: "not " + is}, nil
	case i >= 0 && value == "false":
		is := adjective(conditions[i])
		return goal{condition: conditions[i], word: "not " + is, unmet: "still " + is}, nil
	case !given && (word == goalReleased || word == goalDeleted):
		return goal{word: word}, nil
	}
	f := app.Usagef("--for %q is nothing that one can wait for", text)
	if near := suggest.Nearest(text, goals()); near != "" {
		return goal{}, f.WithHint("did you mean %s? There are: %s", near, strings.Join(goals(), ", "))
	}
	return goal{}, f.WithHint("there are: %s", strings.Join(goals(), ", "))
}

// adjective returns the word for an object whose condition is true.
func adjective(condition string) string {
	switch condition {
	case v1.ConditionConflict:
		return "in conflict"
	case v1.ConditionOverLimit:
		return "over its limit"
	}
	return strings.ToLower(condition)
}

// applies refuses a condition that this kind of object never has.
func (g goal) applies(what string, conditions []string) error {
	if g.condition == "" || slices.Contains(conditions, g.condition) {
		return nil
	}
	return app.Usagef("%s cannot be waited for with --for=%s: it has the conditions %s", what,
		strings.ToLower(g.condition), strings.ToLower(strings.Join(conditions, ", ")))
}

// state is what a status says.
type state struct {
	observed, generation int64
	conditions           []metav1.Condition
}

func stateOfPool(p resource.Pool) state {
	return state{p.Status.ObservedGeneration, p.Generation, p.Status.Conditions}
}

func stateOfClaim(c resource.Claim) state {
	return state{c.Status.ObservedGeneration, c.Generation, c.Status.Conditions}
}

// met reports whether the condition is as wanted. how describes its state. A status for an older generation does not
// count.
func (g goal) met(s state) (ok bool, how string) {
	c := meta.FindStatusCondition(s.conditions, g.condition)
	switch {
	case s.observed == 0:
		return false, waitsForFirstLook
	case s.observed < s.generation:
		return false, waitsForSecondLook
	case c == nil && g.condition == v1.ConditionPreallocated:
		return false, "its spec does not say preallocate"
	case c == nil:
		return false, waitsForFirstLook
	case (c.Status == metav1.ConditionTrue) == g.want:
		return true, ""
	}
	return false, c.Reason + ": " + c.Message
}

const (
	waitsForFirstLook  = "no controller has looked at it yet"
	waitsForSecondLook = "the controller has not seen its last change yet"
)

// inUse describes how many addresses are in use, and on which hosts.
func inUse(set map[string]lease.Lease) string {
	held := make([]lease.Lease, 0, len(set))
	for _, l := range set {
		held = append(held, l)
	}
	return humanize.Plural(len(held), "address") + " in use: " + resource.PerHost(held)
}

// holding describes the state of an address that is not free.
func holding(l lease.Lease) string {
	switch {
	case l.IsQuarantined():
		return "it is quarantined"
	case l.State == lease.Reserved:
		return "it is reserved"
	case l.Host.IsValid():
		return "it is in use by " + l.Who() + " on " + l.Host.String()
	default:
		return "it is in use by " + l.Who()
	}
}
