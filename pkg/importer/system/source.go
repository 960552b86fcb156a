package system

import (
	"context"
	"fmt"
	"net/netip"
	"strings"

	"go4.org/netipx"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/json"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/importer"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

// Source is where a reader finds the objects of its system.
type Source struct {
	// Each calls fn with the JSON of every object of a kind, which is valid until fn returns; served is false if the
	// API server does not know the kind.
	Each func(ctx context.Context, kind schema.GroupVersionResource, fn func(object []byte) error) (
		served bool, err error)
	// Get returns an object; found is false if there is none.
	Get func(ctx context.Context, kind schema.GroupVersionResource, namespace, name string) (
		o *unstructured.Unstructured, found bool, err error)
	// Dirs are directories by the name of their node, for systems that keep files.
	Dirs map[string]string
	// Files are paths of tables, for systems that export some.
	Files []string
}

// System is a system to take over from.
type System struct {
	Name    string
	Aliases []string
	// Title completes the sentence "Take over what ... has".
	Title string
	// About says in a few lines what is read and what it becomes.
	About   string
	Example string
	// Dirs and Files report what the reader reads in place of objects.
	Dirs, Files bool
	// Table reports whether the rows are those of a table, whose addresses no pod has.
	Table bool
	Read  func(ctx context.Context, from Source) (importer.Rows, error)
	// Withdrawer has the system stop allocating certain addresses while it runs; nil if it cannot be told.
	Withdrawer importer.Withdrawer
}

// All returns the systems in the order in which help lists them.
func All() []System {
	return []System{
		netservice(), calico(), contiv(), ipkeeper(), galaxy(), hostLocal(), hostnicCNI(), kubeOVN(), spiderpool(),
		table(), whereabouts(),
	}
}

// configMap returns the data of a ConfigMap of kube-system; found is false if there is none.
func (s Source) configMap(ctx context.Context, name string) (data map[string]string, found bool, err error) {
	o, found, err := s.Get(ctx, schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, "kube-system", name)
	if !found || err != nil {
		return nil, false, err
	}
	data, _, err = unstructured.NestedStringMap(o.Object, "data")
	return data, true, err
}

// NotServedError says that the cluster has no objects of the system.
type NotServedError struct{ Kind schema.GroupVersionResource }

func (e *NotServedError) Error() string {
	return fmt.Sprintf("the cluster does not serve %s of %s: there is nothing to take over",
		e.Kind.Resource, e.Kind.GroupVersion())
}

// reading reads kinds of one group, until one of them fails.
type reading struct {
	ctx  context.Context //nolint:containedctx // it lives for one call of a reader
	from Source
	of   schema.GroupVersion
	err  error
}

// list returns the objects of a kind as values of T, none after an error. A kind that is not served is an error if it
// is needed, else it has no objects.
func list[T any](r *reading, resource string, needed bool) (out []T) {
	forEach(r, resource, needed, func(o *T) { out = append(out, *o) })
	if r.err != nil {
		return nil
	}
	return out
}

// forEach calls fn with each object of a kind, as list returns them, while they are read: a system can have an object
// for each address.
func forEach[T any](r *reading, resource string, needed bool, fn func(*T)) {
	if r.err != nil {
		return
	}
	kind := r.of.WithResource(resource)
	var served bool
	served, r.err = r.from.Each(r.ctx, kind, func(text []byte) error {
		var o T
		if err := json.UnmarshalCaseSensitivePreserveInts(text, &o); err != nil {
			var named metav1.PartialObjectMetadata
			_ = json.UnmarshalCaseSensitivePreserveInts(text, &named) // for the message, as far as it can be read
			return fmt.Errorf("%s of %s cannot be read: %w", object(named.Kind, &named), named.APIVersion, err)
		}
		if m, ok := any(&o).(metav1.Object); ok {
			m.SetManagedFields(nil)
		}
		fn(&o)
		return nil
	})
	if r.err == nil && !served && needed {
		r.err = &NotServedError{kind}
	}
}

// rows collects what a reader finds.
type rows struct{ importer.Rows }

func (r *rows) conflict(object, format string, args ...any) {
	r.Conflicts = append(r.Conflicts, importer.Remark{Object: object, Cause: fmt.Sprintf(format, args...)})
}

func (r *rows) left(object, format string, args ...any) {
	r.Left = append(r.Left, importer.Remark{Object: object, Cause: fmt.Sprintf(format, args...)})
}

// subnet parses a subnet of an object; ok is false, and the contradiction noted, if it is none.
func (r *rows) subnet(object, field, text string) (subnet netip.Prefix, ok bool) {
	subnet, err := netip.ParsePrefix(strings.TrimSpace(text))
	if err != nil {
		r.conflict(object, "%s %q: %v", field, text, err)
	}
	return subnet.Masked(), err == nil
}

// poolOf returns a pool with all addresses of a subnet, which every node may draw from.
func poolOf(name string, subnet netip.Prefix) v1.BCSNetPool {
	o := importer.Pool(name)
	o.Spec = v1.BCSNetPoolSpec{
		Net: subnet.Addr().String(), Mask: int32(subnet.Bits()), AvailableIPs: []string{subnet.String()},
		HostSelector: everyNode(),
	}
	return o
}

// disabled notes a pool that the other system does not allocate from.
func (r *rows) disabled(object string) {
	r.left(object, "it is disabled there: leave the pool cordoned")
}

// add adds an address of the given text, with or without a prefix length. A text that is not an address is a
// contradiction.
func (r *rows) add(text string, a importer.Address) {
	text, _, _ = strings.Cut(text, "/")
	addr, err := ipaddr.ParseAddr(text)
	if err != nil {
		r.conflict(a.Object, "%v", err)
		return
	}
	a.Addr = addr
	r.Addresses = append(r.Addresses, a)
}

// reservation adds the addresses that an object reserves, but those that it withdraws for us.
func (r *rows) reservation(kind string, o metav1.Object, texts []string) {
	ours, err := noted(o)
	if err != nil {
		r.conflict(object(kind, o), "annotation %s: %v", v1.WithdrawnAnnotation, err)
		return
	}
	for _, text := range texts {
		r.reserve(object(kind, o), text, kind+" "+o.GetName(), ours)
	}
}

// reserve adds the addresses of a range but some as reserved ones. More than maxReserved are not listed one by one.
func (r *rows) reserve(object, text, reason string, but *netipx.IPSet) {
	list, err := ipaddr.ParseRange(text)
	if err != nil {
		r.conflict(object, "%v", err)
		return
	}
	set := ipaddr.Subtract(ipaddr.SetOf(list), but)
	if ipaddr.SizeOfSet(set) > maxReserved {
		r.conflict(object, "%s has more than %d addresses: exclude them in the pool", text, maxReserved)
		return
	}
	for a := range ipaddr.All(set) {
		r.Addresses = append(r.Addresses,
			importer.Address{Addr: a, Object: object, State: importer.Kept, Reason: reason})
	}
}

// maxReserved bounds the addresses that one range of another system reserves here.
const maxReserved = 1024

// split returns namespace and name of a reference NAMESPACE/NAME.
func split(ref string) (namespace, name string) {
	namespace, name, ok := strings.Cut(ref, "/")
	if !ok {
		return "", ref
	}
	return namespace, name
}

// everyNode selects all nodes: every kubelet sets this label.
func everyNode() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: "kubernetes.io/os", Operator: metav1.LabelSelectorOpExists},
	}}
}

// object names an object in messages.
func object(kind string, o metav1.Object) string {
	if o.GetNamespace() != "" {
		return kind + " " + o.GetNamespace() + "/" + o.GetName()
	}
	return kind + " " + o.GetName()
}

// poolName returns a name that a pool can have.
func poolName(name string) string {
	return strings.Trim(strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' {
			return c
		}
		if c >= 'A' && c <= 'Z' {
			return c - 'A' + 'a'
		}
		return '-'
	}, name), "-")
}

// excluded returns the ranges that an object excludes, cut to the subnet, as pools take nothing else. A CIDR with host
// bits excludes its whole network, as in the other systems.
func (r *rows) excluded(object string, subnet netip.Prefix, texts []string) (list []string) {
	for _, text := range texts {
		text := strings.ReplaceAll(text, " ", "")
		if p, err := netip.ParsePrefix(text); err == nil {
			text = p.Masked().String()
		}
		one, err := ipaddr.ParseRange(text)
		if err != nil {
			r.conflict(object, "excluded range %q: %v", text, err)
			continue
		}
		inside := ipaddr.Intersect(ipaddr.SetOf(one), ipaddr.SetOf(netipx.RangeOfPrefix(subnet)))
		for _, part := range inside.Ranges() {
			list = append(list, ipaddr.FormatRange(part))
		}
	}
	return list
}
