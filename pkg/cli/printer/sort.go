package printer

import (
	"cmp"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/util/jsonpath"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

// SortBy is the flag --sort-by, a field of the objects in kubectl's notations.
type SortBy struct {
	Text string
	path *jsonpath.JSONPath
}

func (s *SortBy) addTo(cmd *cobra.Command, example string) {
	cmd.Flags().StringVar(&s.Text, "sort-by", "", "sort by this `FIELD` of the objects, such as "+example)
	app.Complete(cmd, "sort-by", example)
}

// On reports whether --sort-by was given.
func (s *SortBy) On() bool { return s.path != nil }

func (s *SortBy) validate() (err error) {
	if s.Text == "" {
		return nil
	}
	if s.path, err = fieldPath(s.Text); err != nil {
		return app.Usagef("--sort-by %q: %v", s.Text, err)
	}
	return nil
}

// fieldPath parses .metadata.name, metadata.name, {.metadata.name} or {metadata.name}.
func fieldPath(text string) (*jsonpath.JSONPath, error) {
	bare := text
	if strings.HasPrefix(bare, "{") && strings.HasSuffix(bare, "}") {
		bare = bare[1 : len(bare)-1]
	}
	bare = strings.TrimPrefix(bare, ".")
	if bare == "" || !regexp.MustCompile(`^[^{}]+$`).MatchString(bare) {
		return nil, fmt.Errorf("it is not a field such as .metadata.name")
	}
	path := jsonpath.New("field").AllowMissingKeys(true)
	return path, path.Parse("{." + bare + "}")
}

// SortKey is a comparable value of a field. Missing values come first, then numbers, addresses and words.
type SortKey struct {
	rank   int
	number float64
	addr   netip.Addr
	text   string
}

// Key returns the sort key of an object.
func (s *SortBy) Key(object map[string]any) (SortKey, error) {
	found, err := s.path.FindResults(object)
	if err != nil {
		return SortKey{}, app.Usagef("--sort-by %q: %v", s.Text, err)
	}
	if len(found) == 0 || len(found[0]) == 0 {
		return SortKey{}, nil
	}
	switch v := found[0][0].Interface().(type) {
	case nil:
		return SortKey{}, nil
	case int64:
		return SortKey{rank: 1, number: float64(v)}, nil
	case float64:
		return SortKey{rank: 1, number: v}, nil
	case bool:
		return SortKey{rank: 3, text: fmt.Sprint(v)}, nil
	case string:
		if a, err := ipaddr.ParseAddr(v); err == nil {
			return SortKey{rank: 2, addr: a}, nil
		}
		if a, err := ipaddr.ParseObjectName(v); err == nil {
			return SortKey{rank: 2, addr: a}, nil
		}
		return SortKey{rank: 3, text: v}, nil
	default:
		return SortKey{}, app.Usagef("--sort-by %q: it is a list or has fields of its own, and cannot be compared",
			s.Text).
			WithHint("see what fields there are with -o yaml")
	}
}

func (k SortKey) compare(o SortKey) int {
	return cmp.Or(cmp.Compare(k.rank, o.rank), cmp.Compare(k.number, o.number), k.addr.Compare(o.addr),
		cmp.Compare(k.text, o.text))
}

// Sorted sorts items by the field; items with equal values keep their order. It fails if no item has the field, which
// is probably misspelt.
func Sorted[T any](s *SortBy, items []T, keyOf func(T) (SortKey, error)) error {
	if !s.On() || len(items) == 0 {
		return nil
	}
	type keyed struct {
		item T
		key  SortKey
	}
	all := make([]keyed, 0, len(items))
	for _, item := range items {
		key, err := keyOf(item)
		if err != nil {
			return err
		}
		all = append(all, keyed{item, key})
	}
	if !slices.ContainsFunc(all, func(k keyed) bool { return k.key.rank > 0 }) {
		return app.Usagef("--sort-by %q: nothing in the list has this field", s.Text).
			WithHint("see what fields there are with -o yaml")
	}
	slices.SortStableFunc(all, func(a, b keyed) int { return a.key.compare(b.key) })
	for i := range all {
		items[i] = all[i].item
	}
	return nil
}
