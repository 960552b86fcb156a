package gc

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bcsnet/bcsnet/pkg/controller/leadership"
	"github.com/bcsnet/bcsnet/pkg/controller/node"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// waitsName is the ConfigMap in the controller's namespace that records when addresses began to wait for hosts without
// a Node, and which nodes had addresses of hosts before. Without it, the grace period would begin anew with each
// process, and a process would take the node that has an address now for the one on which a lease's container runs.
const waitsName = leadership.LeaseName + "-waits"

// maxWaits bounds the entries of the ConfigMap. Suspects that do not fit begin anew with the next process.
const maxWaits = 4096

// waits stores when leases were first seen abandoned, and the former nodes of addresses, beyond the life of a process.
// Only one leader uses it at a time.
type waits struct {
	live      client.Reader
	client    client.Client
	namespace string
	// recall is called with the former nodes that an earlier process wrote down.
	recall func([]node.Former)
	// object is the ConfigMap as known in this term; nil before it was read.
	object *corev1.ConfigMap
}

// forget drops the ConfigMap that was read, so that the next use reads it again.
func (w *waits) forget() { w.object = nil }

// load reads the ConfigMap once a term.
func (w *waits) load(ctx context.Context) error {
	if w.object != nil {
		return nil
	}
	var o corev1.ConfigMap
	err := w.live.Get(ctx, types.NamespacedName{Namespace: w.namespace, Name: waitsName}, &o)
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	o.Namespace, o.Name = w.namespace, waitsName
	w.object = &o
	w.recall(readFormers(o.BinaryData[formersKey]))
	return nil
}

// since returns the time at which a lease was first seen abandoned, if that is recorded for the same holding.
func (w *waits) since(l lease.Lease) (at time.Time, ok bool) {
	if w.object == nil {
		return at, false
	}
	text, version, _ := strings.Cut(w.object.Data[waitKey(l)], " ")
	if version != strconv.FormatUint(l.Bound(), 10) {
		return at, false
	}
	at, ok = store.ParseTime(text)
	return at, ok && !at.IsZero()
}

// waitKey returns the key of an attachment in the ConfigMap.
func waitKey(l lease.Lease) string {
	if l.FromSecond {
		return ipaddr.ObjectName(l.Addr) + "_second"
	}
	return ipaddr.ObjectName(l.Addr)
}

// save records when suspects began to wait, and the former nodes of addresses, the latest first, if that has changed.
func (w *waits) save(ctx context.Context, all []suspect, formers []node.Former) error {
	if w.object == nil {
		return nil
	}
	slices.SortFunc(all, func(a, b suspect) int {
		return cmp.Or(a.first.Compare(b.first), a.lease.Addr.Compare(b.lease.Addr))
	})
	data := map[string]string{}
	for _, s := range all[:min(len(all), maxWaits)] {
		data[waitKey(s.lease)] = store.FormatTime(s.first) + " " + strconv.FormatUint(s.lease.Bound(), 10)
	}
	text := writeFormers(formers)
	if maps.Equal(data, w.object.Data) && bytes.Equal(text, w.object.BinaryData[formersKey]) {
		return nil
	}
	next := w.object.DeepCopy()
	if next.Data, next.BinaryData = data, nil; len(text) > 0 {
		next.BinaryData = map[string][]byte{formersKey: text}
	}
	write := func() error { return w.client.Update(ctx, next) }
	if next.ResourceVersion == "" {
		write = func() error { return w.client.Create(ctx, next) }
	}
	if err := write(); err != nil {
		w.forget() // another process has written it
		return err
	}
	w.object = next
	return nil
}
