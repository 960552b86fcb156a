package app

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"
)

// Verb is one command. Complete parses the arguments and reads the objects that they name. Validate checks the result
// without I/O. Run carries it out.
type Verb interface {
	Complete(args []string) error
	Validate() error
	Run(ctx context.Context) error
}

// Complete does nothing, for verbs without arguments, which embed App.
func (s *App) Complete([]string) error { return nil }

// Validate returns nil, for verbs whose flags need no check, which embed App.
func (s *App) Validate() error { return nil }

// Runs returns the RunE of a verb.
func Runs(v Verb) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if err := v.Complete(args); err != nil {
			return misused(cmd, err)
		}
		if err := v.Validate(); err != nil {
			return misused(cmd, err)
		}
		return v.Run(cmd.Context())
	}
}

// misused adds an example as the hint to an error of usage that has none.
func misused(cmd *cobra.Command, err error) error {
	f, ok := errors.AsType[*Failure](err)
	if !ok || f.Code != ExitUsage || f.Hint != "" {
		return err
	}
	if example := firstExample(cmd); example != "" {
		f.Hint = "for example: " + example
	} else {
		f.Hint = "see " + cmd.CommandPath() + " --help"
	}
	return err
}

func firstExample(cmd *cobra.Command) string {
	for line := range strings.Lines(cmd.Example) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			return line
		}
	}
	return ""
}

// Takes checks the number of arguments. If most is 0, there is no upper bound.
func Takes(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		wanted := strings.TrimPrefix(cmd.Use, cmd.Name()+" ")
		switch {
		case len(args) < least:
			return misused(cmd, Usagef("%s needs %s", cmd.CommandPath(), wanted))
		case most == 0 && least == 0 && len(args) > 0:
			f := Usagef("%s takes no argument, not %q", cmd.CommandPath(), args[0])
			if one, _, err := cmd.Parent().Find([]string{"describe"}); err == nil && one.Name() == "describe" &&
				cmd.Name() == "list" {
				return f.WithHint("to see one: %s %s", one.CommandPath(), args[0])
			}
			return misused(cmd, f)
		case most > 0 && len(args) > most:
			return misused(cmd, Usagef("%s takes only %s, not also %q", cmd.CommandPath(), wanted, args[most]))
		}
		return nil
	}
}
