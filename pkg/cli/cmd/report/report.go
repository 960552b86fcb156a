package report

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/cli/terminal"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
)

type report struct {
	*app.App
	cmd   *cobra.Command
	file  string
	force bool
}

// reportFile is the default name of the archive.
const reportFile = "bcsnet-report.tar.gz"

// New returns the command report.
func New(s *app.App) *cobra.Command {
	v := &report{App: s}
	v.cmd = &cobra.Command{
		Use: "report [FILE]", Aliases: []string{"support-bundle"}, GroupID: "other", Args: app.Takes(0, 1),
		RunE:  app.Runs(v),
		Short: "Gather what others need to help into one file",
		Long: `Gather into one archive, ` + reportFile + ` unless FILE names another:
pools, addresses, their events, nodes (addresses and conditions), the pods and
the logs of the controller, versions. Values of environment variables are left
out, Secrets and ConfigMaps are not read. What you may not read is left out,
too, and named in the README of the archive. Look through it before you hand it
on: it holds the names of pods and hosts. With - it goes to standard output.`,
		Example: `  bcsnetctl report
  bcsnetctl report /tmp/prod-a.tar.gz --force
  bcsnetctl report - | ssh jumphost 'cat > report.tar.gz'`,
		ValidArgsFunction: completeArchives,
	}
	v.cmd.Flags().BoolVar(&v.force, "force", false, "replace a file that exists")
	return v.cmd
}

// completeArchives makes the shell offer archives and folders for the only argument.
func completeArchives(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return []string{"tar.gz"}, cobra.ShellCompDirectiveFilterFileExt
}

func (v *report) Complete(args []string) error {
	v.file = reportFile
	if len(args) > 0 {
		v.file = args[0]
	}
	return nil
}

func (v *report) Validate() error {
	switch {
	case v.file == "":
		return app.Usagef("FILE is empty")
	case v.file == "-" && v.Terminal.Tty:
		return app.Usagef("an archive is nothing for a terminal").WithHint("write a file: bcsnetctl report FILE")
	case v.file == "-":
		return nil
	}
	if folder, err := os.Stat(v.file); err == nil && folder.IsDir() {
		return app.Usagef("%s is a folder", v.file).WithHint("name a file in it: bcsnetctl report %s",
			filepath.Join(v.file, reportFile))
	}
	if _, err := os.Lstat(v.file); !errors.Is(err, fs.ErrNotExist) && !v.force {
		return app.Usagef("%s exists already", v.file).WithHint(
			"to replace it: --force; or name another: bcsnetctl report FILE")
	}
	return nil
}

func (v *report) Run(ctx context.Context) error {
	if v.file == "-" {
		return v.write(ctx, terminal.Raw(v.Out))
	}
	// The file appears when it is whole.
	f, err := os.CreateTemp(filepath.Dir(v.file), ".bcsnet-report-*")
	if why, ok := errors.AsType[*fs.PathError](err); ok {
		return &app.Failure{Message: fmt.Sprintf("%s cannot be written: %v", v.file, why.Err), Cause: err}
	}
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	if err := errors.Join(v.write(ctx, f), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), v.file); err != nil {
		return fmt.Errorf("the archive is not where it should be: %w", err)
	}
	v.Say.Done("%s written", v.file)
	return nil
}

// write writes all parts. It fails if none of them could be read.
func (v *report) write(ctx context.Context, w io.Writer) error {
	b := newBundle(w, v.Now())
	parts, err := v.parts(ctx)
	if err != nil {
		return err
	}
	got, lost := 0, map[string][]string{} // parts by the error of reading them
	var failed []error
	for _, p := range parts {
		n, err := b.add(ctx, p)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, errUnwritable):
			return err
		case err != nil:
			err = resource.Explain(v.App, err)
			if lost[err.Error()] == nil {
				failed = append(failed, err)
			}
			lost[err.Error()] = append(lost[err.Error()], p.what)
			b.missing(p, err)
		default:
			got++
			v.Say.Done("%s%s", p.what, howMany(n))
		}
	}
	if got == 0 && len(failed) > 0 {
		return app.Several(failed)
	}
	for _, err := range failed {
		v.Say.Warn("%s could not be read: %v", humanize.List(lost[err.Error()]), err)
	}
	return b.finish(ctx, v.App)
}
