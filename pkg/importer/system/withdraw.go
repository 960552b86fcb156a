package system

import (
	"slices"
	"strings"

	"go4.org/netipx"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

// noted returns the addresses that the annotation of an object lists.
func noted(o metav1.Object) (*netipx.IPSet, error) {
	text := o.GetAnnotations()[v1.WithdrawnAnnotation]
	if text == "" {
		return ipaddr.SetOf(), nil
	}
	return setOf(strings.Split(text, ","))
}

// note writes the annotation; it goes if nothing is withdrawn.
func note(o *unstructured.Unstructured, withdrawn *netipx.IPSet) {
	all := o.GetAnnotations()
	if all == nil {
		all = map[string]string{}
	}
	if all[v1.WithdrawnAnnotation] = ipaddr.FormatSet(withdrawn); len(withdrawn.Ranges()) == 0 {
		delete(all, v1.WithdrawnAnnotation)
	}
	o.SetAnnotations(all)
}

// setOf returns the addresses of a list. Kube-OVN writes ranges as "a..b".
func setOf(entries []string) (*netipx.IPSet, error) {
	ranges := make([]netipx.IPRange, 0, len(entries))
	for _, text := range entries {
		r, err := ipaddr.ParseRange(strings.ReplaceAll(strings.ReplaceAll(text, "..", "-"), " ", ""))
		if err != nil {
			return nil, err
		}
		ranges = append(ranges, r)
	}
	return ipaddr.SetOf(ranges...), nil
}

// replaced returns a list without the entries that we wrote for some addresses, and with others. Entries of others stay
// as they are, also if they have the same addresses. If somebody spelled ours anew, the addresses are cut out.
func replaced(entries []string, without, with *netipx.IPSet, format func(*netipx.IPSet) []string) ([]any, error) {
	var texts, found []string
	ours := format(without)
	for _, text := range entries {
		if slices.Contains(ours, text) && !slices.Contains(found, text) {
			found = append(found, text)
		} else {
			texts = append(texts, text)
		}
	}
	known, err := setOf(found)
	if err != nil {
		return nil, err
	}
	return cut(texts, ipaddr.Subtract(without, known), with, format)
}

// cut returns a list without some addresses and with others. The remaining entries keep their spelling.
func cut(entries []string, without, with *netipx.IPSet, format func(*netipx.IPSet) []string) ([]any, error) {
	var texts []string
	for _, text := range entries {
		one, err := setOf([]string{text})
		if err != nil {
			return nil, err
		}
		if rest := ipaddr.Subtract(one, without); rest.Equal(one) {
			texts = append(texts, text)
		} else {
			texts = append(texts, format(rest)...)
		}
	}
	list := []any{}
	for _, text := range append(texts, format(with)...) {
		list = append(list, text)
	}
	return list, nil
}

// formatRanges returns a function that writes ranges with a separator between their ends.
func formatRanges(separator string) func(*netipx.IPSet) []string {
	return func(set *netipx.IPSet) (out []string) {
		for _, r := range set.Ranges() {
			out = append(out, strings.ReplaceAll(ipaddr.FormatRange(r), "-", separator))
		}
		return out
	}
}

// formatPrefixes writes CIDRs.
func formatPrefixes(set *netipx.IPSet) (out []string) {
	for _, p := range set.Prefixes() {
		out = append(out, p.String())
	}
	return out
}

// formatAddrs writes single addresses.
func formatAddrs(set *netipx.IPSet) (out []string) {
	for a := range ipaddr.All(set) {
		out = append(out, a.String())
	}
	return out
}

// resource returns the kind of objects that withdraw addresses.
func resource(group, version, name string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: group, Version: version, Resource: name}
}
