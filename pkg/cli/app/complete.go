package app

import (
	"context"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
)

// CompletionEnv says how long one press of the tab key may take, as 3s, where the API server is far away.
const CompletionEnv = "BCSNETCTL_COMPLETION_TIMEOUT"

// completeTime bounds the questions behind one press of the tab key.
func completeTime() time.Duration {
	if d, err := time.ParseDuration(os.Getenv(CompletionEnv)); err == nil && d > 0 {
		return d
	}
	return 1500 * time.Millisecond
}

// Completer is what cobra asks for the words that may follow. It says nothing when something fails.
type Completer = cobra.CompletionFunc

// Complete gives a flag fixed values; none means that nothing is offered, not even files.
func Complete(cmd *cobra.Command, flag string, values ...string) {
	CompleteWith(cmd, flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}

// CompleteWith registers a completer for the values of a flag, which must exist.
func CompleteWith(cmd *cobra.Command, flag string, f Completer) {
	if err := cmd.RegisterFlagCompletionFunc(flag, f); err != nil {
		panic(err) // the flag does not exist: a mistake in this package
	}
}

// Offer runs a question in the time there is; found nothing means that there is nothing to offer.
func (s *App) Offer(
	cmd *cobra.Command, ask func(context.Context) ([]string, error),
) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), completeTime())
	defer cancel()
	if cfg, err := s.Connect(); err == nil {
		cfg.WarningHandler = rest.NoWarnings{}
	}
	found, err := ask(ctx)
	if err != nil {
		found = nil
	}
	return found, cobra.ShellCompDirectiveNoFileComp
}

// Unnamed leaves out the words that were typed already.
func Unnamed(all, typed []string) []string {
	var out []string
	for _, w := range all {
		if !slices.Contains(typed, w) {
			out = append(out, w)
		}
	}
	return out
}
