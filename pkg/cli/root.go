package cli

import (
	"bytes"
	"errors"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/cmd/address"
	"github.com/bcsnet/bcsnet/pkg/cli/cmd/check"
	"github.com/bcsnet/bcsnet/pkg/cli/cmd/claim"
	"github.com/bcsnet/bcsnet/pkg/cli/cmd/doctor"
	"github.com/bcsnet/bcsnet/pkg/cli/cmd/events"
	"github.com/bcsnet/bcsnet/pkg/cli/cmd/export"
	"github.com/bcsnet/bcsnet/pkg/cli/cmd/host"
	"github.com/bcsnet/bcsnet/pkg/cli/cmd/importer"
	"github.com/bcsnet/bcsnet/pkg/cli/cmd/inspect"
	"github.com/bcsnet/bcsnet/pkg/cli/cmd/install"
	"github.com/bcsnet/bcsnet/pkg/cli/cmd/pool"
	"github.com/bcsnet/bcsnet/pkg/cli/cmd/rebuild"
	"github.com/bcsnet/bcsnet/pkg/cli/cmd/report"
	"github.com/bcsnet/bcsnet/pkg/cli/cmd/top"
	"github.com/bcsnet/bcsnet/pkg/cli/cmd/ui"
	"github.com/bcsnet/bcsnet/pkg/cli/cmd/usage"
	"github.com/bcsnet/bcsnet/pkg/cli/cmd/wait"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/cli/terminal"
	"github.com/bcsnet/bcsnet/pkg/internal/suggest"
)

// helpFunc wraps cobra's help function, which ignores write errors. It stores the error in App.Unshown.
func helpFunc(s *app.App, show func(*cobra.Command, []string)) func(*cobra.Command, []string) {
	return func(cmd *cobra.Command, args []string) {
		var text bytes.Buffer
		cmd.SetOut(&text)
		show(cmd, args)
		cmd.SetOut(s.Out)
		_, s.Unshown = text.WriteTo(s.Out)
	}
}

// newRoot builds the tree.
func newRoot(s *app.App) *cobra.Command {
	root := &cobra.Command{
		Use:           strings.ReplaceAll(s.Name, " ", "-"), // the file of a kubectl plugin
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: s.Name},
		Short:         "Manage address pools, hosts and leases",
		Long:          rootHelp,
		Version:       s.Version,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetHelpCommandGroupID("other")
	root.SetIn(s.In)
	root.SetOut(s.Out)
	root.SetErr(s.ErrOut)
	s.Flags.AddFlags(root.PersistentFlags())
	root.AddGroup(
		&cobra.Group{ID: "objects", Title: "Pools, addresses, claims, hosts:"},
		&cobra.Group{ID: "other", Title: "Other:"})
	root.AddCommand(
		pool.New(s, usage.NewOfPool(s)),
		address.NewIP(s), address.NewLease(s), claim.New(s), host.New(s), host.NewReleaseHost(s),
		usage.New(s), top.New(s), ui.New(s), inspect.New(s), inspect.NewTrace(s), inspect.NewExplain(s), doctor.New(s),
		check.New(s),
		rebuild.New(s),
		importer.New(s), importer.NewBackup(s), importer.NewRestore(s), export.New(s),
		wait.New(s),
		events.New(s),
		install.New(s, doctor.Examine(s)), install.NewUpgrade(s, doctor.Examine(s)), install.NewUninstall(s),
		install.NewVersion(s),
		report.New(s),
		newCompletion(s), newOptions())
	root.SetUsageTemplate(usageTemplate)
	root.SetVersionTemplate("{{.DisplayName}} {{.Version}}\n")
	root.Flags().Bool("version", false, "show the version of this program; see also the command version")
	root.SetHelpFunc(helpFunc(s, root.HelpFunc()))
	root.SetFlagErrorFunc(flagError)
	root.PersistentPreRun = func(cmd *cobra.Command, _ []string) {
		if f := cmd.Flag("output"); f != nil && f.Value.String() == printer.FormatCSV {
			s.Terminal = terminal.Terminal{} // values have no colours and bars
		}
	}
	resource.CompleteContexts(s, root)
	root.InitDefaultHelpCmd()
	if help, _, err := root.Find([]string{"help"}); err == nil {
		help.Run, help.RunE = nil, helpOn
	}
	guide(root)
	rename(s, root)
	return root
}

// guide makes every command with subcommands show its help if it is called alone and has no action of its own. If the
// command is called with an unknown word, it suggests what may be meant.
func guide(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		guide(sub)
	}
	if !cmd.HasSubCommands() || takesArguments(cmd) {
		return
	}
	alone := cmd.RunE
	cmd.Args = cobra.ArbitraryArgs
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 && alone != nil {
			return alone(cmd, args)
		}
		return group(cmd, args)
	}
}

// takesArguments reports whether a command with subcommands also takes arguments, such as explain POD and explain
// namespace.
func takesArguments(cmd *cobra.Command) bool { return strings.Contains(cmd.Use, " ") }

// helpWidth is the width of help texts, whatever the terminal.
const helpWidth = 80

const rootHelp = `Manage the address pools of bcsnet: which addresses there are, which hosts draw
from them, and who holds which. Works on the objects in the cluster, also while
the controller is down.

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 findings or differences,
4 not all looked at, 124 out of time, 130 interrupted.`

// rename replaces the program's name in the help by the name that was called.
func rename(s *app.App, cmd *cobra.Command) {
	cmd.Long, cmd.Example = s.Called(cmd.Long), s.Called(cmd.Example)
	for _, sub := range cmd.Commands() {
		rename(s, sub)
	}
}

// flagError returns the error for a wrong flag. For an unknown one it suggests a similar flag.
func flagError(cmd *cobra.Command, err error) error {
	if words := cmd.Flags().Args(); cmd.HasSubCommands() && !takesArguments(cmd) && len(words) > 0 {
		return group(cmd, words) // the flag belongs to a command that does not exist
	}
	f := app.Usagef("%v", err)
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		if text := guessFlag(cmd, unknown.GetSpecifiedName()); text != "" {
			return f.WithHint("%s", text)
		}
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		if near := suggest.Nearest(unknown.GetSpecifiedName(), names); near != "" {
			return f.WithHint("did you mean --%s? See %s --help", near, cmd.CommandPath())
		}
	}
	return f.WithHint("see %s --help", cmd.CommandPath())
}

// group runs a command that only has subcommands: it shows its help or refuses an unknown word.
func group(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	f := app.Usagef("%s has no command %q", cmd.CommandPath(), args[0])
	if text := guess(cmd, args); text != "" {
		return f.WithHint("%s", text)
	}
	names := app.Map(cmd.Commands(), (*cobra.Command).Name)
	// A short word is similar to many names.
	if near := suggest.Nearest(args[0], names); near != "" && suggest.Distance(args[0], near) <= (len(args[0])+1)/3 {
		return f.WithHint("did you mean %s %s?", cmd.CommandPath(), near)
	}
	return f.WithHint("see %s --help", cmd.CommandPath())
}

// helpOn runs the command help. cobra's own RunE shows help even for an unknown command.
func helpOn(cmd *cobra.Command, args []string) error {
	about, rest, err := cmd.Root().Find(args)
	switch {
	case err != nil:
		return app.Usagef("%v", err)
	case about.HasSubCommands() && len(rest) > 0:
		return group(about, rest)
	}
	about.InitDefaultHelpFlag()
	return about.Help()
}

func newOptions() *cobra.Command {
	return &cobra.Command{
		Use: "options", Short: "List the flags that choose the cluster", GroupID: "other", Args: app.Takes(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := cmd.OutOrStdout().Write([]byte("These flags go with every command:\n\n" +
				cmd.InheritedFlags().FlagUsagesWrapped(helpWidth)))
			return err
		},
	}
}

// usageTemplate is cobra's template, but the flags for the cluster are shown by a command of their own.
const usageTemplate = `Usage:{{if .Runnable}}{{if not .HasAvailableSubCommands}}
  {{.UseLine}}{{end}}{{end}}{{if .HasAvailableSubCommands}}
  {{.CommandPath}} COMMAND{{end}}{{if .HasExample}}

Examples:
{{.Example}}{{end}}{{if .HasAvailableSubCommands}}{{$cmds := .Commands}}{{if eq (len .Groups) 0}}

Commands:{{range $cmds}}{{if .IsAvailableCommand}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}{{else}}{{range $group := .Groups}}

{{.Title}}{{range $cmds}}{{if (and (eq .GroupID $group.ID) .IsAvailableCommand)}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}{{end}}{{end}}{{end}}{{if and .HasParent .HasAvailableLocalFlags}}

Flags:
{{.LocalFlags.FlagUsagesWrapped 80 | trimTrailingWhitespaces}}{{end}}

Flags for the cluster (--kubeconfig, --context, ...): {{.Root.DisplayName}} options
`
