package resource

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/terminal"
)

// ConditionLines formats the conditions that are not as they should be.
func ConditionLines(s *app.App, all []metav1.Condition) (lines []string) {
	for _, c := range all {
		good := metav1.ConditionFalse
		if c.Type == v1.ConditionReady || c.Type == v1.ConditionPreallocated {
			good = metav1.ConditionTrue
		}
		if c.Status != good {
			lines = append(lines, fmt.Sprintf("  %s=%s, %s: %s", c.Type, c.Status, c.Reason,
				s.Called(terminal.Visible(c.Message))))
		}
	}
	return lines
}
