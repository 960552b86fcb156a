package follow

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
)

// Deletion has the flags of a command that deletes objects and waits until they are gone.
type Deletion struct {
	yes, wait bool
	timeout   time.Duration
}

// AddTo adds the flags to a command. nouns are its objects.
func (d *Deletion) AddTo(s *app.App, cmd *cobra.Command, nouns string) {
	cmd.Flags().BoolVarP(&d.yes, "yes", "y", false, "do not ask")
	cmd.Flags().BoolVar(&d.wait, "wait", true, "wait until the "+nouns+" are gone")
	cmd.Flags().DurationVar(&d.timeout, "timeout", 5*time.Minute, "how long to wait; 0 is for ever")
	s.DryRun.AddTo(cmd)
}

// Validate refuses a negative time.
func (d *Deletion) Validate() error {
	if d.timeout < 0 {
		return app.Usagef("--timeout %s is negative", d.timeout)
	}
	return nil
}

// Doomed is an object that a command deletes.
type Doomed struct {
	Noun, Name string
	// Stops says what the object does no more while it is being deleted.
	Stops string
	// Waits is the number of addresses in use, for which its deletion waits.
	Waits int
	// Delete deletes the object that was shown, not a new one of the same name.
	Delete func(context.Context) error
	// UntilGone waits until it is gone, and returns the last reason for waiting.
	UntilGone func(ctx context.Context, limit time.Duration) (what string, err error)
}

func (o Doomed) title() string { return o.Noun + " " + o.Name }

// Run asks, deletes the objects, and waits until they are gone.
func (d *Deletion) Run(ctx context.Context, s *app.App, all []Doomed) error {
	names := app.Map(all, func(o Doomed) string { return o.Name })
	if err := s.Confirm(ctx, d.yes, fmt.Sprintf("Delete %s?", app.Those(all[0].Noun, names))); err != nil {
		return err
	}
	var failed app.Several
	var left []Doomed
	for _, o := range all {
		var err error
		if s.DryRun != app.DryRunClient {
			err = o.Delete(ctx)
		}
		switch {
		case err != nil:
			failed = append(failed, fmt.Errorf("%s was not deleted: %w", o.title(), err))
		case s.DryRun != app.DryRunNone && o.Waits > 0:
			s.Say.Done("%s would %s, and would be deleted once %s %s released", o.title(), o.Stops,
				humanize.Plural(o.Waits, "address"), humanize.OneOr(o.Waits, "is", "are"))
		case s.DryRun != app.DryRunNone:
			s.Say.Done("%s deleted", o.title())
		case !d.wait:
			s.Say.Done("deletion of %s requested", o.title())
		default:
			left = append(left, o)
		}
	}
	limit := Remaining(s, d.timeout)
	for _, o := range left {
		if err := d.await(ctx, s, o, limit()); err != nil {
			failed = append(failed, err)
		}
	}
	return failed.OrNil()
}

func (d *Deletion) await(ctx context.Context, s *app.App, o Doomed, limit time.Duration) error {
	what, err := o.UntilGone(ctx, limit)
	switch {
	case err == nil:
		s.Say.Done("%s deleted", o.title())
		return nil
	case errors.Is(err, ErrTooLong):
		f := &app.Failure{
			Code: app.ExitTimeout, Message: fmt.Sprintf("%s is not gone after %s: %s", o.title(), d.timeout, what),
			Cause: err,
		}
		if what == WaitsForController {
			return f.WithHint(resource.HintController)
		}
		return f.WithHint("it goes without this command; see bcsnetctl %s describe %s", o.Noun, o.Name)
	case ctx.Err() != nil:
		return &app.Failure{Message: fmt.Sprintf("%s is still being deleted, and goes without this command: %s",
			o.title(), what)}
	default:
		return err
	}
}
