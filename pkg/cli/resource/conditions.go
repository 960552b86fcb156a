package resource

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/printers"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
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
				s.Called(printers.EscapeTerminal(c.Message))))
		}
	}
	return lines
}
