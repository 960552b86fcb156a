package app

import (
	"context"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
)

// CompletionEnv is the variable for the time limit of one completion, such as 3s. It helps if the API server is far
// away.
const CompletionEnv = "BCSNETCTL_COMPLETION_TIMEOUT"

func completeTime() time.Duration {
	if d, err := time.ParseDuration(os.Getenv(CompletionEnv)); err == nil && d > 0 {
		return d
	}
	return 1500 * time.Millisecond
}

// Completer returns the words that may follow. Its errors are not shown.
type Completer = cobra.CompletionFunc

// Complete registers fixed values for a flag. Without values nothing is offered, not even files.
func Complete(cmd *cobra.Command, flag string, values ...string) {
	CompleteWith(cmd, flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}

// CompleteWith registers a completer for a flag. It panics if the flag does not exist.
func CompleteWith(cmd *cobra.Command, flag string, f Completer) {
	if err := cmd.RegisterFlagCompletionFunc(flag, f); err != nil {
		panic(err) // the flag does not exist: a bug in this package
	}
}

// Offer returns a completer that runs ask within the time limit of a completion. args are the arguments that were typed
// before. After an error it offers nothing.
func (s *App) Offer(ask func(ctx context.Context, args []string) ([]string, error)) Completer {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), completeTime())
		defer cancel()
		if cfg, err := s.Connect(); err == nil {
			cfg.WarningHandler = rest.NoWarnings{}
		}
		found, err := ask(ctx, args)
		if err != nil {
			found = nil
		}
		return found, cobra.ShellCompDirectiveNoFileComp
	}
}

// First completes only the first argument.
func First(c Completer) Completer {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return c(cmd, args, typed)
	}
}

// Unnamed returns the words that have not been typed.
func Unnamed(all, typed []string) []string {
	var out []string
	for _, w := range all {
		if !slices.Contains(typed, w) {
			out = append(out, w)
		}
	}
	return out
}
