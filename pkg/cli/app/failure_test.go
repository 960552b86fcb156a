package app

import (
	"context"
	"errors"
	"fmt"
	"testing"
)

func TestExitCode(t *testing.T) {
	interrupted, cancel := context.WithCancel(t.Context())
	cancel()
	for name, test := range map[string]struct {
		ctx  context.Context
		err  error
		want int
	}{
		"done":             {t.Context(), nil, 0},
		"failed":           {t.Context(), errors.New("no"), 1},
		"refused":          {t.Context(), Refuse(ReasonPoolOverlap, "no"), 1},
		"usage":            {t.Context(), Usagef("no"), 2},
		"usage inside":     {t.Context(), fmt.Errorf("pool: %w", Usagef("no")), 2},
		"one of several":   {t.Context(), Several{errors.New("no"), &Failure{Code: ExitTimeout}}, 124},
		"deadline":         {t.Context(), fmt.Errorf("no: %w", context.DeadlineExceeded), 124},
		"interrupted":      {interrupted, context.Canceled, 130},
		"done despite all": {interrupted, nil, 0},
	} {
		if got := ExitCode(test.ctx, test.err); got != test.want {
			t.Errorf("%s: got %d, want %d", name, got, test.want)
		}
	}
}
