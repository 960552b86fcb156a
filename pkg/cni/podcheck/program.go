package podcheck

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
)

// Run runs the command `serve NAME`, or `ask PLAN REPORT` with two files.
func Run(ctx context.Context, args []string) error {
	switch {
	case len(args) == 2 && args[0] == "serve":
		return Serve(ctx, everywhere(), args[1])
	case len(args) == 3 && args[0] == "ask":
		return report(ctx, args[1], args[2])
	}
	return errors.New("want `serve NAME` or `ask PLAN REPORT`; hint: it runs in the pods of bcsnetctl check nodes")
}

// report writes the report into an existing file, which Kubernetes reads when the container ends.
func report(ctx context.Context, plan, file string) error {
	r, err := Ask(ctx, plan)
	if err != nil {
		return err
	}
	text, err := r.Encode()
	if err != nil {
		return err
	}
	if err := os.WriteFile(file, text, 0o644); err != nil { //nolint:gosec // whoever runs the check reads it
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

// Main runs the program and returns its exit code.
func Main(ctx context.Context, args []string, errOut io.Writer) int {
	if err := Run(ctx, args); err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(errOut, "✗", err)
		return 1
	}
	return 0
}
