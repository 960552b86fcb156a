package store

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// Object returns the BCSNetIP of a lease. Its managedFields are one empty entry, which makes the API server keep none:
// this makes writes a third faster, and lists half as large.
func Object(l lease.Lease) *v1.BCSNetIP {
	if l.FromSecond {
		l = l.Turned()
	}
	o := &v1.BCSNetIP{
		TypeMeta: metav1.TypeMeta{APIVersion: v1.GroupVersion.String(), Kind: "BCSNetIP"},
		ObjectMeta: metav1.ObjectMeta{
			Name:          ipaddr.ObjectName(l.Addr),
			ManagedFields: []metav1.ManagedFieldsEntry{{}},
		},
		Spec: v1.BCSNetIPSpec{Pool: l.Pool, Mask: int32(l.Bits), Gateway: addrString(l.Gateway)},
		Status: v1.BCSNetIPStatus{
			Status: v1.IPPhase(l.State.String()), Host: addrString(l.Host), Fixed: l.Fixed, Claim: l.Claim,
			ContainerID: l.ContainerID, IfName: l.IfName, PodPrimaryKey: l.PodPrimaryKey,
			PodName: l.PodName, PodNamespace: l.Namespace, PodUID: l.PodUID, PodUIDNamedBy: namedBy(l.UIDNamed,
				l.Holder),
			Owner:      l.Owner,
			CNINetwork: cniNetwork(l.Holder), CNINetworkNamedBy: namedBy(l.CNINetwork != "", l.Holder),
			Given: given(l.Holder), GivenTo: namedBy(l.Given != "", l.Holder),
			AddressNamedBy:                namedBy(l.AddressNamed, l.Holder),
			TerminationGracePeriodSeconds: int32(l.Termination / time.Second),
			SupersededContainerIDs:        l.Superseded, SetSize: int32(l.SetSize), Slot: int32(l.Slot),
			StartedAt: FormatTime(l.StartedAt), BoundVersion: formatVersion(l.BoundVersion),
			SecondAttachment: secondAttachment(l.Other),
			UpdateTime:       FormatTime(l.Updated), FixedIPExpiredTime: l.ExpiredTime,
			Conflict: conflict(l.Conflict), History: history(l.History),
		},
	}
	if l.Other != nil {
		o.Labels = map[string]string{v1.MigratingLabel: "true"}
	}
	o.ResourceVersion = formatVersion(l.Version)
	if !l.Addr.Is4() {
		o.Spec.Address = l.Addr.String()
	}
	if l.HeldFinalizer {
		o.Finalizers = []string{v1.HeldFinalizer}
	}
	return o
}

// Lease converts a BCSNetIP; foreign reports whether the object has fields that the Go type lacks.
func Lease(o *v1.BCSNetIP, foreign bool) (lease.Lease, error) {
	addr, err := ipaddr.ParseObjectName(o.Name)
	if err != nil {
		return lease.Lease{}, err
	}
	version, err := strconv.ParseUint(o.ResourceVersion, 10, 64)
	if err != nil {
		return lease.Lease{}, fmt.Errorf("BCSNetIP %s: resourceVersion %q is not a number", o.Name, o.ResourceVersion)
	}
	l := lease.Lease{
		Addr: addr, Version: version,
		Params: lease.Params{Pool: o.Spec.Pool, Bits: int(o.Spec.Mask)},
		Holder: lease.Holder{
			ContainerID: o.Status.ContainerID, IfName: o.Status.IfName,
			Namespace: o.Status.PodNamespace, PodName: o.Status.PodName, PodUID: o.Status.PodUID,
			Owner: o.Status.Owner, Superseded: o.Status.SupersededContainerIDs, SetSize: int(o.Status.SetSize),
			Slot: int(o.Status.Slot), Termination: time.Duration(max(0,
				o.Status.TerminationGracePeriodSeconds)) * time.Second,
		},
		Retention: lease.Retention{Claim: o.Status.Claim, Fixed: o.Status.Fixed, PodPrimaryKey: o.Status.PodPrimaryKey,
			ExpiredTime: o.Status.FixedIPExpiredTime},
		Deleting:      o.DeletionTimestamp != nil,
		HeldFinalizer: slices.Contains(o.Finalizers, v1.HeldFinalizer),
		Foreign:       foreign || foreignLabels(o.Labels)+len(o.Annotations)+len(o.OwnerReferences) > 0,
	}
	switch o.Status.Status {
	case v1.IPActive:
		l.State = lease.Active
	case v1.IPReserved:
		l.State = lease.Reserved
	case v1.IPAvailable:
	}
	if len(o.Finalizers) > 1 || len(o.Finalizers) == 1 && !l.HeldFinalizer {
		l.Foreign = true
	}
	l.UIDNamed = isNamed(o.Status.PodUIDNamedBy, l.Holder)
	l.AddressNamed = isNamed(o.Status.AddressNamedBy, l.Holder)
	if isNamed(o.Status.CNINetworkNamedBy, l.Holder) {
		l.CNINetwork = o.Status.CNINetwork
	}
	if isNamed(o.Status.GivenTo, l.Holder) {
		l.Given = readGiven(o.Status.Given)
	}
	// Values that cannot be parsed stay as stored until the lease is written again.
	var ok [7]bool
	l.Gateway, ok[0] = parseAddr(o.Spec.Gateway)
	l.Host, ok[1] = parseAddr(o.Status.Host)
	l.Updated, ok[2] = ParseTime(o.Status.UpdateTime)
	l.StartedAt, ok[3] = ParseTime(o.Status.StartedAt)
	l.BoundVersion, ok[4] = readVersion(o.Status.BoundVersion)
	if ok[5] = true; l.State == lease.Active {
		l.Other, ok[5] = readSecond(o.Status.SecondAttachment, l.Holder)
	}
	l.Conflict, ok[6] = readConflict(o.Status.Conflict)
	var known bool
	if l.History, known = readHistory(o.Status.History); !known || slices.Contains(ok[:], false) {
		l.Foreign = true
	}
	return l, nil
}

// namedBy returns the mark for a holder whose request named something: the pod's UID, the address, its network. The
// mark contains the container, so that it is void after a release that does not know the field gives the address to
// another container.
func namedBy(named bool, h lease.Holder) string {
	if !named {
		return ""
	}
	return prefix(h.ContainerID)
}

// isNamed reports whether a mark belongs to the holder.
func isNamed(mark string, h lease.Holder) bool { return mark != "" && mark == prefix(h.ContainerID) }

// cniNetwork returns the network of a holder's container. Without a container there is none.
func cniNetwork(h lease.Holder) string {
	if h.ContainerID == "" {
		return ""
	}
	return h.CNINetwork
}

// given returns the field with the settings given to a holder's container; nil if they are not known.
func given(h lease.Holder) *v1.GivenSettings {
	f, ok := h.Given.Fields()
	if !ok || h.ContainerID == "" {
		return nil
	}
	return new(v1.GivenSettings(f))
}

func readGiven(s *v1.GivenSettings) lease.Given {
	if s == nil {
		return ""
	}
	return lease.GivenOf(lease.GivenFields(*s))
}

// prefix shortens a container's ID to at most 12 bytes that distinguish it from other recent holders. It keeps whole
// characters, as JSON requires.
func prefix(containerID string) string {
	return strings.ToValidUTF8(containerID[:min(len(containerID), 12)], "")
}

func history(h lease.History) (out []v1.HistoryEntry) {
	for _, p := range h.Entries() {
		out = append(out, v1.HistoryEntry{
			Holder: p.Holder, Host: addrString(p.Host), Since: FormatTime(p.Since), Until: FormatTime(p.Until),
			Verb: p.Verb, By: p.By, Reason: p.Reason, PodUID: p.PodUID, IfName: p.IfName,
		})
	}
	return out
}

// readHistory reads the valid entries; known is false if some are invalid.
func readHistory(entries []v1.HistoryEntry) (h lease.History, known bool) {
	if len(entries) == 0 {
		return "", true
	}
	known = true
	var all []lease.Past
	for _, e := range entries {
		p := lease.Past{
			Holder: e.Holder, PodUID: e.PodUID, IfName: e.IfName,
			Change: lease.Change{Verb: e.Verb, By: e.By, Reason: e.Reason},
		}
		var ok [3]bool
		p.Host, ok[0] = parseAddr(e.Host)
		p.Since, ok[1] = ParseTime(e.Since)
		p.Until, ok[2] = ParseTime(e.Until)
		known = known && !slices.Contains(ok[:], false)
		all = append(all, p)
	}
	return lease.NewHistory(all), known
}

func addrString(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}

func parseAddr(s string) (netip.Addr, bool) {
	if s == "" {
		return netip.Addr{}, true
	}
	a, err := ipaddr.ParseAddr(s)
	return a, err == nil
}

// FormatTime formats a time as in objects: RFC 3339 with nanoseconds, UTC; empty for the zero time.
func FormatTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// ParseTime parses the output of FormatTime; ok is false for anything else.
func ParseTime(s string) (t time.Time, ok bool) {
	if s == "" {
		return t, true
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	return t, err == nil
}

// decoder decodes objects from a stream and detects unknown fields.
type decoder struct{ *json.Decoder }

func newDecoder(j *json.Decoder) decoder {
	j.DisallowUnknownFields()
	return decoder{j}
}

// decode decodes a value into v. A field that v lacks is not an error: it sets foreign. The JSON package finishes the
// value before it reports such a field, so no data is lost and the stream stays in step.
func (d decoder) decode(v any) (foreign bool, err error) {
	err = d.Decode(v)
	if err != nil && strings.HasPrefix(err.Error(), "json: unknown field ") {
		return true, nil
	}
	return false, err
}

func decodeLease(body []byte) (lease.Lease, error) {
	o, foreign, err := readObject(body)
	if err != nil {
		return lease.Lease{}, fmt.Errorf("reading a BCSNetIP: %w", err)
	}
	return Lease(o, foreign)
}

// readObject decodes a BCSNetIP; foreign reports whether it has fields that the Go type lacks.
func readObject(body []byte) (o *v1.BCSNetIP, foreign bool, err error) {
	o = &v1.BCSNetIP{}
	if fastDecode(body, o) {
		return o, false, nil
	}
	*o = v1.BCSNetIP{}
	foreign, err = newDecoder(json.NewDecoder(bytes.NewReader(body))).decode(o)
	return o, foreign, err
}

// mergeInto writes a lease into a stored object, and keeps fields that this release does not know.
func mergeInto(stored []byte, l lease.Lease) ([]byte, error) {
	raw, err := fields(stored)
	if err != nil {
		return nil, err
	}
	meta, _ := raw["metadata"].(map[string]any)
	if meta == nil {
		return nil, fmt.Errorf("the stored object has no metadata")
	}
	ours, err := json.Marshal(Object(l))
	if err != nil {
		return nil, err
	}
	set, err := fields(ours)
	if err != nil {
		return nil, err
	}
	for field, known := range map[string][]string{"spec": jsonNames(v1.BCSNetIPSpec{}),
		"status": jsonNames(v1.BCSNetIPStatus{})} {
		part, _ := raw[field].(map[string]any)
		if part == nil {
			part = map[string]any{}
		}
		for _, name := range known {
			delete(part, name)
		}
		values, _ := set[field].(map[string]any)
		maps.Copy(part, values)
		raw[field] = part
	}
	meta["resourceVersion"] = strconv.FormatUint(l.Version, 10)
	meta["managedFields"] = []any{map[string]any{}}
	var finalizers []any
	stringsOf, _ := meta["finalizers"].([]any)
	for _, f := range stringsOf {
		if f != v1.HeldFinalizer {
			finalizers = append(finalizers, f)
		}
	}
	if l.HeldFinalizer {
		finalizers = append(finalizers, v1.HeldFinalizer)
	}
	meta["finalizers"] = finalizers
	labels, _ := meta["labels"].(map[string]any)
	if delete(labels, v1.MigratingLabel); l.Other != nil {
		if labels == nil {
			labels = map[string]any{}
		}
		labels[v1.MigratingLabel] = "true"
	}
	if meta["labels"] = labels; len(labels) == 0 {
		delete(meta, "labels")
	}
	return json.Marshal(raw)
}

// fields decodes an object without converting its numbers: a 64-bit number of a newer release does not fit into a
// float64.
func fields(object []byte) (all map[string]any, err error) {
	d := json.NewDecoder(bytes.NewReader(object))
	d.UseNumber()
	return all, d.Decode(&all)
}

// jsonNames returns the JSON names of a struct's fields.
func jsonNames(v any) []string {
	var names []string
	t := reflect.TypeOf(v)
	for field := range t.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}
