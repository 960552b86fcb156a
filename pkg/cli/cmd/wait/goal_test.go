package wait

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
)

// FuzzGoal: what one can wait for has a name, and is read the same in any case.
func FuzzGoal(f *testing.F) {
	for _, text := range append(goals(), "Ready=true", "=", "", "deleted=false", "READY=False") {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		g, err := parseGoal(text)
		if err != nil {
			return
		}
		if again, err := parseGoal(strings.ToUpper(text)); err != nil || again != g || g.word == "" {
			t.Errorf("%q is %+v, in capitals %+v, %v", text, g, again, err)
		}
	})
}

func TestParseGoal(t *testing.T) {
	ready := goal{condition: v1.ConditionReady, want: true, word: "ready", unmet: "not ready"}
	for text, want := range map[string]goal{
		"ready": ready, "Ready=TRUE": ready,
		"ready=false":     {condition: v1.ConditionReady, word: "not ready", unmet: "still ready"},
		"exhausted=false": {condition: v1.ConditionExhausted, word: "not exhausted", unmet: "still exhausted"},
		"draining":        {condition: v1.ConditionDraining, want: true, word: "draining", unmet: "not draining"},
		"released":        {word: goalReleased},
		"deleted":         {word: goalDeleted},
	} {
		got, err := parseGoal(text)
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(goal{})); diff != "" || err != nil {
			t.Errorf("%q: %v %s", text, err, diff)
		}
	}
	for _, text := range []string{"", "ready=", "ready=maybe", "released=true", "cordoned", "=true"} {
		var f *app.Failure
		if _, err := parseGoal(text); !errors.As(err, &f) || f.Code != app.ExitUsage {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestGoalMet(t *testing.T) {
	status := func(observed int64, state metav1.ConditionStatus) v1.BCSNetPoolStatus {
		return v1.BCSNetPoolStatus{ObservedGeneration: observed, Conditions: []metav1.Condition{
			{Type: v1.ConditionReady, Status: state, Reason: "Why", Message: "so"},
		}}
	}
	type verdict struct {
		OK  bool
		How string
	}
	for name, c := range map[string]struct {
		status v1.BCSNetPoolStatus
		want   bool
		expect verdict
	}{
		"unseen":                  {v1.BCSNetPoolStatus{}, true, verdict{false, waitsForFirstLook}},
		"seen, without condition": {v1.BCSNetPoolStatus{ObservedGeneration: 2}, true, verdict{false, waitsForFirstLook}},
		"about an older spec":     {status(1, metav1.ConditionTrue), true, verdict{false, waitsForSecondLook}},
		"so":                      {status(2, metav1.ConditionTrue), true, verdict{OK: true}},
		"not so":                  {status(2, metav1.ConditionFalse), true, verdict{false, "Why: so"}},
		"not so, as wished":       {status(2, metav1.ConditionFalse), false, verdict{OK: true}},
		"so, unlike wished":       {status(2, metav1.ConditionTrue), false, verdict{false, "Why: so"}},
		"unknown is not true":     {status(2, metav1.ConditionUnknown), true, verdict{false, "Why: so"}},
	} {
		p := resource.Pool{BCSNetPool: &v1.BCSNetPool{ObjectMeta: metav1.ObjectMeta{Generation: 2}, Status: c.status}}
		var got verdict
		got.OK, got.How = goal{condition: v1.ConditionReady, want: c.want}.met(stateOfPool(p))
		if diff := cmp.Diff(c.expect, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
