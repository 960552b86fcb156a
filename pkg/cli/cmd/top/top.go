package top

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
)

// New returns the command top; without a subcommand it runs top pool.
func New(s *app.App) *cobra.Command {
	cmd := poolCommand(s, `Show the fullest pools, or the hosts or namespaces that hold the most addresses.
Without a command it is bcsnetctl top pool. With --watch it also says how fast
that changes.`)
	cmd.Use, cmd.GroupID = "top", "objects"
	cmd.Short = "Show what is fullest, and how fast it fills"
	cmd.Example = `  bcsnetctl top
  bcsnetctl top -w
  bcsnetctl top host
  bcsnetctl top namespace --pool blue`
	cmd.AddCommand(newPool(s), newHost(s), newNamespace(s))
	return cmd
}

// order is the flag --sort-by of top. It is a word, because the order must be known before there are objects.
type order[T any] struct {
	text string
	// known has the orders; the first one is the default.
	known []ordering[T]
}

type ordering[T any] struct {
	word    string
	compare func(a, b T) int
}

func (o *order[T]) addTo(cmd *cobra.Command) {
	o.text = o.known[0].word
	cmd.Flags().StringVar(&o.text, "sort-by", o.text, "sort by this `WORD`: "+strings.Join(o.words(), ", "))
	app.Complete(cmd, "sort-by", o.words()...)
}

func (o *order[T]) words() (out []string) {
	for _, k := range o.known {
		out = append(out, k.word)
	}
	return out
}

func (o *order[T]) validate(watch bool) error {
	switch {
	case !slices.Contains(o.words(), o.text):
		return app.Usagef("--sort-by %q is not one of %s", o.text, strings.Join(o.words(), ", "))
	case o.text == orderRate && !watch:
		return app.Usagef("--sort-by %s needs --watch: a rate is measured from one look to the next", orderRate)
	}
	return nil
}

func (o *order[T]) compare(a, b T) int {
	i := slices.Index(o.words(), o.text)
	return o.known[i].compare(a, b)
}

// orderRate sorts by the rate of change.
const orderRate = "rate"
