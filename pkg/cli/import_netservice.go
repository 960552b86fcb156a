package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/netservice"
)

// importNetservice takes over what the released bcs-netservice-controller has.
type importNetservice struct {
	*session
	output output
	yes    bool
}

func newImportNetservice(s *session) *cobra.Command {
	v := &importNetservice{session: s}
	cmd := &cobra.Command{
		Use: "netservice", Aliases: []string{"bcs-netservice", "bcs-netservice-controller"}, Args: takes(0, 0), RunE: runs(v),
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
	s.dry.addTo(cmd)
	v.output.addTo(cmd)
	return cmd
}

func (v *importNetservice) Complete([]string) error { return nil }

func (v *importNetservice) Validate() error { return v.output.validate() }

func (v *importNetservice) Run(ctx context.Context) error {
	a, err := v.startAllocator(ctx, nil)
	if err != nil {
		return err
	}
	defer a.stop()
	job, err := v.plan(ctx, a)
	if err != nil {
		return err
	}
	if err := v.show(job); err != nil {
		return err
	}
	if !job.empty() && v.dry == dryRunNone && !v.yes {
		if err := v.confirm(ctx, "Take this over?"); err != nil {
			return err
		}
	}
	outlivePipes()
	failed := v.carryOut(ctx, a, job)
	if err := v.print(job); err != nil {
		failed = append(failed, err)
	}
	if failed.compact() == nil && len(job.plan.Conflicts) == 0 {
		v.sayNext(job)
	}
	return append(failed, contradictions(job.plan.Conflicts)).compact()
}

// sayNext names the steps that follow.
func (v *importNetservice) sayNext(job *netserviceJob) {
	if v.dry != dryRunNone {
		return
	}
	v.hint("next, the addresses of running pods that no object names: bcsnetctl rebuild")
	if names := job.cordoned(); len(names) > 0 {
		v.hint("then have the pools hand out: bcsnetctl pool uncordon %s", strings.Join(names, " "))
	}
}

// contradictions is the error for objects that contradict each other.
func contradictions(all []netservice.Remark) error {
	if len(all) == 0 {
		return nil
	}
	f := &failure{code: exitFindings, message: fmt.Sprintf("%s %s to be resolved, %s first", humanize.Plural(len(all), "contradiction"),
		humanize.OneOr(len(all), "has", "have"), all[0].Object)}
	return f.withHint("keep the pools cordoned; mend the objects of the released program, or free what was set aside: " +
		"bcsnetctl ip unreserve ADDRESS; then run it again")
}
