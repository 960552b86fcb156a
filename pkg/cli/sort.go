package cli

import (
	"cmp"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/util/jsonpath"

	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

// sortBy is the flag --sort-by: a field of the objects, in the spellings of kubectl.
type sortBy struct {
	text string
	path *jsonpath.JSONPath
}

func (s *sortBy) addTo(cmd *cobra.Command, example string) {
	cmd.Flags().StringVar(&s.text, "sort-by", "", "sort by this `FIELD` of the objects, such as "+example)
	complete(cmd, "sort-by", example)
}

func (s *sortBy) on() bool { return s.path != nil }

func (s *sortBy) validate() (err error) {
	if s.text == "" {
		return nil
	}
	if s.path, err = fieldPath(s.text); err != nil {
		return usagef("--sort-by %q: %v", s.text, err)
	}
	return nil
}

// fieldPath reads .metadata.name, metadata.name, {.metadata.name} or {metadata.name}.
func fieldPath(text string) (*jsonpath.JSONPath, error) {
	bare := text
	if strings.HasPrefix(bare, "{") && strings.HasSuffix(bare, "}") {
		bare = bare[1 : len(bare)-1]
	}
	bare = strings.TrimPrefix(bare, ".")
	if bare == "" || !regexp.MustCompile(`^[^{}]+$`).MatchString(bare) {
		return nil, fmt.Errorf("it is no field such as .metadata.name")
	}
	path := jsonpath.New("field").AllowMissingKeys(true)
	return path, path.Parse("{." + bare + "}")
}

// sortKey is the value of a field, in a form that can be compared: nothing, then numbers, then addresses,
// then words.
type sortKey struct {
	rank   int
	number float64
	addr   netip.Addr
	text   string
}

// key is what an object is sorted by.
func (s *sortBy) key(object map[string]any) (sortKey, error) {
	found, err := s.path.FindResults(object)
	if err != nil {
		return sortKey{}, usagef("--sort-by %q: %v", s.text, err)
	}
	if len(found) == 0 || len(found[0]) == 0 {
		return sortKey{}, nil
	}
	switch v := found[0][0].Interface().(type) {
	case nil:
		return sortKey{}, nil
	case int64:
		return sortKey{rank: 1, number: float64(v)}, nil
	case float64:
		return sortKey{rank: 1, number: v}, nil
	case bool:
		return sortKey{rank: 3, text: fmt.Sprint(v)}, nil
	case string:
		if a, err := ipaddr.ParseAddr(v); err == nil {
			return sortKey{rank: 2, addr: a}, nil
		}
		if a, err := ipaddr.ParseObjectName(v); err == nil {
			return sortKey{rank: 2, addr: a}, nil
		}
		return sortKey{rank: 3, text: v}, nil
	default:
		return sortKey{}, usagef("--sort-by %q: it is a list or has fields of its own, and cannot be compared", s.text).
			withHint("see what fields there are with -o yaml")
	}
}

func (k sortKey) compare(o sortKey) int {
	return cmp.Or(cmp.Compare(k.rank, o.rank), cmp.Compare(k.number, o.number), k.addr.Compare(o.addr), cmp.Compare(k.text, o.text))
}

// sorted puts items in the order of the field, and leaves those with equal values as they are. A field
// that none has is probably misspelt.
func sorted[T any](s *sortBy, items []T, keyOf func(T) (sortKey, error)) error {
	if !s.on() || len(items) == 0 {
		return nil
	}
	type keyed struct {
		item T
		key  sortKey
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
		return usagef("--sort-by %q: nothing in the list has this field", s.text).withHint("see what fields there are with -o yaml")
	}
	slices.SortStableFunc(all, func(a, b keyed) int { return a.key.compare(b.key) })
	for i := range all {
		items[i] = all[i].item
	}
	return nil
}
