package address

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// TestUnsettled: which errors leave open whether an address is held.
func TestUnsettled(t *testing.T) {
	over, end := context.WithTimeout(t.Context(), 0)
	defer end()
	stopped, stop := context.WithCancel(t.Context())
	stop()
	for name, tc := range map[string]struct {
		user, asking context.Context
		err          error
		code         int
		hint         bool
	}{
		"refused":         {t.Context(), t.Context(), ipam.Refuse(ipam.ReasonPoolExhausted, "full"), app.ExitFailed, false},
		"another error":   {t.Context(), t.Context(), errors.New("no"), app.ExitFailed, false},
		"not available":   {t.Context(), t.Context(), ipam.Refuse(ipam.ReasonUnavailable, "down"), app.ExitFailed, true},
		"outcome unknown": {t.Context(), t.Context(), ipam.Refuse(ipam.ReasonOutcomeUnknown, "cut"), app.ExitFailed, true},
		"out of time":     {t.Context(), over, ipam.Refuse(ipam.ReasonUnavailable, "late"), app.ExitTimeout, true},
		"interrupted":     {stopped, stopped, ipam.Refuse(ipam.ReasonUnavailable, "stopped"), app.ExitInterrupted, true},
	} {
		t.Run(name, func(t *testing.T) {
			err := (&ipAllocate{owner: "vm-1"}).unsettled(tc.user, tc.asking, tc.err)
			if got := app.ExitCode(tc.user, err); got != tc.code {
				t.Errorf("exit code %d, want %d", got, tc.code)
			}
			if f, ok := errors.AsType[*app.Failure](err); ok != tc.hint || ok &&
				!strings.Contains(f.Hint, `ip find "vm-1" --for`) {
				t.Errorf("%v has no such hint", err)
			}
		})
	}
}
