package resource

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/terminal"
)

// NotAsTheyShould returns the conditions that report a problem.
func NotAsTheyShould(all []metav1.Condition) (bad []metav1.Condition) {
	for _, c := range all {
		good := metav1.ConditionFalse
		if c.Type == v1.ConditionReady || c.Type == v1.ConditionPreallocated {
			good = metav1.ConditionTrue
		}
		if c.Status != good {
			bad = append(bad, c)
		}
	}
	return bad
}

// ConditionLines formats the conditions that report a problem.
func ConditionLines(s *app.App, all []metav1.Condition) (lines []string) {
	for _, c := range NotAsTheyShould(all) {
		lines = append(lines, fmt.Sprintf("  %s=%s, %s: %s", c.Type, c.Status, c.Reason,
			s.Called(terminal.Visible(c.Message))))
	}
	return lines
}
