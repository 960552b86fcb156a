package importer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/importer"
	"github.com/bcsnet/bcsnet/pkg/importer/backup"
	"github.com/bcsnet/bcsnet/pkg/importer/system"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
)

// NewRestore returns the command that restores a backup. It is an import of our own objects.
func NewRestore(s *app.App) *cobra.Command {
	v := &takeOver{App: s, words: words{do: "restore", done: "restored",
		contradictions: "what is here stays; if the backup is right, free the address first: bcsnetctl ip release " +
			"ADDRESS, or bcsnetctl ip unreserve ADDRESS; then run it again"}}
	cmd := &cobra.Command{
		Use: "restore FILE", Args: app.Takes(1, 1), RunE: app.Runs(v), GroupID: "other",
		Short: "Restore pools, claims and addresses from a backup",
		Long: `Create what bcsnetctl backup saved and what is missing here: pools, claims, and
addresses with their holders, reservations, quarantines and history. FILE - is
standard input.

What is here stays: pools and claims that differ are named, and addresses that
somebody has here, or that changed here since, are not changed. Exit code 3 says
that addresses have another use here.

It shows everything first, then asks; look with --dry-run=client. A pool that it
makes is cordoned until the addresses are there, so that nobody else gets one of
them. It stays cordoned if a running pod reports an address of it that nobody
has: run bcsnetctl rebuild, then this again. Run it again also when it was
interrupted: it does the rest.

Addresses of pods that do not exist here are made, too; the controller frees
them when the pods are certainly gone. In another cluster, to which these pods
never come, use --only-pods-here.`,
		Example: `  bcsnetctl restore bcsnet.backup --dry-run=client
  bcsnetctl restore bcsnet.backup --yes
  bcsnetctl --context other restore bcsnet.backup --only-pods-here`,
	}
	cmd.Flags().BoolVar(&v.onlyPodsHere, "only-pods-here", false,
		"give addresses back whose pods do not exist here")
	v.addTo(cmd)
	return cmd
}

// from reads the backup in a file.
func (v *takeOver) from(file string) system.System {
	read := func(context.Context, system.Source) (importer.Rows, error) {
		in := v.In
		if file != "-" {
			f, err := os.Open(file)
			if err != nil {
				return importer.Rows{}, &app.Failure{Message: err.Error(), Cause: err}
			}
			defer f.Close()
			in = f
		}
		rows, err := backup.Read(in)
		var newer *backup.NewerError
		switch {
		case errors.As(err, &newer):
			return rows, app.Refuse(app.ReasonPoolInvalid, "%s: %v", file, err).
				WithHint("restore it with bcsnetctl of the release that wrote it, or of a later one")
		case errors.Is(err, backup.ErrDamaged):
			return rows, app.Refuse(app.ReasonPoolInvalid, "%s: %v; nothing was changed", file, err).
				WithHint("take another copy of the file: bcsnetctl backup writes it whole or not at all")
		}
		return rows, err
	}
	return system.System{Name: "backup", Title: file, Read: read}
}

// restoring marks a pool that is made: cordoned until its addresses are there.
func restoring(o *unstructured.Unstructured) error {
	annotations := o.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[v1.RestoringAnnotation] = "cordoned until bcsnetctl restore is done"
	o.SetAnnotations(annotations)
	return unstructured.SetNestedField(o.Object, true, "spec", "cordoned")
}

// uncordon ends that, for pools whose addresses are all there. A pool that somebody else made meanwhile stays.
func (v *takeOver) uncordon(ctx context.Context, pools *resource.Pools, j *job) (failed app.Several) {
	if v.DryRun != app.DryRunNone {
		return nil
	}
	var waiting []string
	for _, name := range slices.Concat(j.plan.Uncordon, j.plan.Closed) {
		closed := slices.Contains(j.plan.Closed, name)
		if j.unfinished[name] || ctx.Err() != nil {
			waiting = append(waiting, name)
			continue
		}
		if a, reported := j.plan.Reported[name]; reported && !closed {
			f := &app.Failure{Code: app.ExitFindings,
				Message: fmt.Sprintf("pool %s stays cordoned: a running pod reports %s, and nobody has it here",
					name, a)}
			failed = append(failed, f.WithHint("bcsnetctl rebuild, then run it again"))
			continue
		}
		if err := v.endRestoring(ctx, pools, name, closed); err != nil {
			failed = append(failed, err)
		}
	}
	if len(waiting) > 0 {
		v.Say.Warn("%s %s cordoned: not all that was held there is created again", app.Those("pool", waiting),
			humanize.OneOr(len(waiting), "stays", "stay"))
	}
	return failed
}

// endRestoring takes the mark off a pool, and uncordons it unless it was cordoned in the backup.
func (v *takeOver) endRestoring(ctx context.Context, pools *resource.Pools, name string, closed bool) error {
	for {
		stored, err := pools.API.Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return resource.Explain(v.App, err)
		}
		if stored.GetAnnotations()[v1.RestoringAnnotation] == "" {
			return nil
		}
		change := map[string]any{"metadata": map[string]any{
			"resourceVersion": stored.GetResourceVersion(),
			"annotations":     map[string]any{v1.RestoringAnnotation: nil},
		}}
		if !closed {
			change["spec"] = map[string]any{"cordoned": nil}
		}
		patch, err := json.Marshal(change)
		if err != nil {
			return err
		}
		_, err = pools.API.Patch(ctx, name, types.MergePatchType, patch,
			metav1.PatchOptions{FieldManager: app.ProgramName})
		if !apierrors.IsConflict(err) {
			return resource.Explain(v.App, err)
		}
	}
}
