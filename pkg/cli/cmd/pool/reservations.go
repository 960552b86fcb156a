package pool

import (
	"encoding/json"
	"net/netip"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// reservationsAnnotation holds the reservations of a pool in a file of pool export. A pool in the cluster does not have
// it; the addresses hold their reservations.
const reservationsAnnotation = "networkextension.bkbcs.tencent.com/reservations"

// reservedRange has addresses that were set aside for the same reason.
type reservedRange struct {
	// Addresses is a comma-separated list of addresses and ranges.
	Addresses string `json:"addresses"`
	By        string `json:"by,omitempty"`
	Reason    string `json:"reason,omitempty"`
}

// writeReservations adds the reservations to an exported pool.
func writeReservations(o *unstructured.Unstructured, leases []lease.Lease) error {
	if len(leases) == 0 {
		return nil
	}
	type key struct{ by, reason string }
	var order []key
	addrs := map[key][]netip.Addr{}
	for _, l := range leases {
		var k key
		if last, ok := l.History.Last(); ok && last.Verb == lease.VerbReserve {
			k = key{last.By, last.Reason}
		}
		if addrs[k] == nil {
			order = append(order, k)
		}
		addrs[k] = append(addrs[k], l.Addr)
	}
	var all []reservedRange
	for _, k := range order {
		all = append(all, reservedRange{
			Addresses: ipaddr.FormatSet(ipaddr.SetOfAddrs(addrs[k]...)), By: k.by, Reason: k.reason,
		})
	}
	return annotate(o, reservationsAnnotation, all)
}

// annotate stores a value as JSON in an annotation of an exported pool.
func annotate(o *unstructured.Unstructured, key string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	annotations := o.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[key] = string(text)
	o.SetAnnotations(annotations)
	return nil
}

// readReservations returns the reservations of a pool in a file.
func readReservations(o *unstructured.Unstructured) (all []reservedRange, err error) {
	text := o.GetAnnotations()[reservationsAnnotation]
	if text == "" {
		return nil, nil
	}
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		return nil, app.Refuse(app.ReasonPoolInvalid, "pool %s: annotation %s: %v", o.GetName(), reservationsAnnotation,
			err)
	}
	for _, r := range all {
		if _, err := r.entries(); err != nil {
			return nil, app.Refuse(app.ReasonPoolInvalid, "pool %s: annotation %s: %v", o.GetName(),
				reservationsAnnotation, err)
		}
	}
	return all, nil
}

func (r reservedRange) entries() ([]resource.Entry, error) {
	return resource.ParseEntries(strings.FieldsFunc(r.Addresses, func(c rune) bool { return c == ',' || c == ' ' }))
}
