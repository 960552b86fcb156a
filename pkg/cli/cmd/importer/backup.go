package importer

import (
	"cmp"
	"context"
	"io"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/importer/backup"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// backUp writes a backup.
type backUp struct {
	*app.App
	file string
}

// NewBackup returns the command that writes a backup.
func NewBackup(s *app.App) *cobra.Command {
	v := &backUp{App: s}
	return &cobra.Command{
		Use: "backup FILE", Args: app.Takes(1, 1), RunE: app.Runs(v), GroupID: "other",
		Short: "Save pools, claims and addresses to a file",
		Long: `Save all pools, claims and addresses as they are at one moment: who has each
address or reserved it, since when and why, quarantines, and the history that
addresses have. bcsnetctl restore creates them again. FILE - is standard output.

The file has one JSON object a line, and its last line tells whether it is
whole. It replaces an earlier one only when it is. Of two backups between which
nothing changed, the files are equal byte by byte. The history of bcsnetctl pool
history, events and conditions are not in it.`,
		Example: `  bcsnetctl backup bcsnet.backup
  bcsnetctl backup - | gzip > bcsnet.backup.gz`,
	}
}

func (v *backUp) Complete(args []string) error {
	v.file = args[0]
	return nil
}

func (v *backUp) Validate() error { return nil }

func (v *backUp) Run(ctx context.Context) error {
	var n backup.Counts
	err := app.WriteFile(v.App, v.file, func(to io.Writer) (err error) {
		n, err = v.write(ctx, to)
		return err
	})
	if err == nil {
		v.Say.Done("saved: %s, %s, %s", humanize.Plural(n.Pools, "pool"), humanize.Plural(n.Claims, "claim"),
			humanize.Plural(n.Addresses, "address"))
	}
	return err
}

// write writes all objects, page by page. All kinds are read as of the moment at which the first was: the API server
// keeps one version of all of them.
func (v *backUp) write(ctx context.Context, to io.Writer) (backup.Counts, error) {
	defer v.Say.WaitLater("reading pools, claims and addresses in " + v.Where())()
	c, err := v.Dynamic()
	if err != nil {
		return backup.Counts{}, err
	}
	w, err := backup.NewWriter(to)
	if err != nil {
		return backup.Counts{}, err
	}
	moment := ""
	for _, kind := range []string{v1.PoolResource, v1.ClaimResource, v1.IPResource} {
		options := metav1.ListOptions{Limit: resource.PageSize}
		if moment != "" {
			options.ResourceVersion, options.ResourceVersionMatch = moment, metav1.ResourceVersionMatchExact
		}
		for more := true; more; {
			page, err := c.Resource(resource.Of(kind)).List(ctx, options)
			if apierrors.IsResourceExpired(err) {
				return w.Counts, app.Refuse(ipam.ReasonUnavailable, "reading took so long that the API server has "+
					"forgotten the moment of the backup").WithHint("try again, nearer to the API server")
			}
			if err != nil {
				return w.Counts, resource.Explain(v.App, err)
			}
			for i := range page.Items {
				if err := w.Add(&page.Items[i]); err != nil {
					return w.Counts, err
				}
			}
			moment = cmp.Or(moment, page.GetResourceVersion())
			more = page.GetContinue() != ""
			options = metav1.ListOptions{Limit: resource.PageSize, Continue: page.GetContinue()}
		}
	}
	return w.Counts, w.End()
}
