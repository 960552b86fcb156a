package importer

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/leasing"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/netservice"
)

// importNetservice takes over what the released bcs-netservice-controller has.
type importNetservice struct {
	*app.App
	output printer.Output
	yes    bool
}

func newImportNetservice(s *app.App) *cobra.Command {
	v := &importNetservice{App: s}
	cmd := &cobra.Command{
		Use: "netservice", Aliases: []string{"bcs-netservice", "bcs-netservice-controller"}, Args: app.Takes(0, 0),
		RunE:  app.Runs(v),
		Short: "Take over what the released bcs-netservice-controller has",
		Long: `Take over the pools, claims and addresses of the released program: its objects
BCSNetPool, BCSNetIPClaim and BCSNetIP of netservice.bkbcs.tencent.com/v1, which
stay as they are. Stop that program first, so that they do not change meanwhile.

Pools that are missing here are made and cordoned; claims keep their names and
are for the address that they are bound to, for as long as expiredDuration says,
else until somebody frees it; addresses stay with the pod or the claim that has
them. Addresses that are Reserved for no claim are set aside.

It shows everything first, then asks; look with --dry-run=client. Where objects
contradict each other, or a running pod, it says so, and exit code 3 tells of
it; such an address goes to the pod that reports it, or is set aside until you
decide. What is here already, or changed here since, is left alone: run it
again when it was interrupted, or when contradictions are resolved.`,
		Example: `  bcsnetctl import netservice --dry-run=client
  bcsnetctl import netservice --yes -o json`,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().BoolVarP(&v.yes, "yes", "y", false, "do not ask")
	s.DryRun.AddTo(cmd)
	v.output.AddTo(cmd)
	return cmd
}

func (v *importNetservice) Complete([]string) error { return nil }

func (v *importNetservice) Validate() error { return v.output.Validate() }

func (v *importNetservice) Run(ctx context.Context) error {
	a, err := leasing.Start(ctx, v.App, nil)
	if err != nil {
		return err
	}
	defer a.Stop()
	job, err := v.plan(ctx, a)
	if err != nil {
		return err
	}
	if err := v.show(job); err != nil {
		return err
	}
	if !job.empty() {
		if err := v.Confirm(ctx, v.yes, "Take this over?"); err != nil {
			return err
		}
	}
	resource.OutlivePipes()
	failed := v.carryOut(ctx, a, job)
	if err := v.print(job); err != nil {
		failed = append(failed, err)
	}
	if failed.Compact() == nil && len(job.plan.Conflicts) == 0 {
		v.sayNext(job)
	}
	return append(failed, contradictions(job.plan.Conflicts)).Compact()
}

// sayNext prints the commands that follow.
func (v *importNetservice) sayNext(job *netserviceJob) {
	if v.DryRun != app.DryRunNone {
		return
	}
	v.Hint("next, the addresses of running pods that no object names: bcsnetctl rebuild")
	if names := job.cordoned(); len(names) > 0 {
		v.Hint("then have the pools hand out: bcsnetctl pool uncordon %s", strings.Join(names, " "))
	}
}

// contradictions returns the error for objects that contradict each other.
func contradictions(all []netservice.Remark) error {
	if len(all) == 0 {
		return nil
	}
	f := &app.Failure{Code: app.ExitFindings,
		Message: fmt.Sprintf("%s %s to be resolved, %s first", humanize.Plural(len(all), "contradiction"),
			humanize.OneOr(len(all), "has", "have"), all[0].Object)}
	return f.WithHint("keep the pools cordoned; mend the objects of the released program, or free what was set " +
		"aside: bcsnetctl ip unreserve ADDRESS; then run it again")
}
