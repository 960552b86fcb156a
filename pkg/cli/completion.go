package cli

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
)

type completion struct {
	*app.App
	cmd   *cobra.Command
	shell string
}

func newCompletion(s *app.App) *cobra.Command {
	v := &completion{App: s}
	cmd := &cobra.Command{
		Use: "completion SHELL", GroupID: "other", Args: app.Takes(1, 1), RunE: app.Runs(v),
		Short: "Print the completion script for bash, zsh, fish or powershell",
		Long: `Print the completion script for a shell. It completes commands, flags, and the
names of pools and hosts in the cluster. For kubectl bcsnet, put
kubectl_complete-bcsnet on PATH beside kubectl-bcsnet, and load kubectl's own
completion. It waits at most 1.5 seconds for the API server; if that is too
short, set ` + app.CompletionEnv + `, such as 5s.`,
		Example: `  source <(bcsnetctl completion bash)
  bcsnetctl completion zsh > "${fpath[1]}/_bcsnetctl"
  bcsnetctl completion fish | source
  bcsnetctl completion powershell | Out-String | Invoke-Expression`,
		ValidArgs: []string{"bash", "zsh", "fish", "powershell"},
	}
	v.cmd = cmd
	return cmd
}

func (v *completion) Complete(args []string) error {
	v.shell = args[0]
	return nil
}

func (v *completion) Validate() error {
	if slices.Contains(v.cmd.ValidArgs, v.shell) {
		return nil
	}
	return app.Usagef("there is no completion for %q, only for bash, zsh, fish and powershell", v.shell)
}

func (v *completion) Run(context.Context) error {
	root := v.cmd.Root()
	switch v.shell {
	case "bash":
		return root.GenBashCompletionV2(v.Out, true)
	case "zsh":
		return root.GenZshCompletion(v.Out)
	case "fish":
		return root.GenFishCompletion(v.Out, true)
	default:
		return root.GenPowerShellCompletionWithDesc(v.Out)
	}
}
