package gc

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bcsnet/bcsnet/pkg/controller/node"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// namespaces has the objects that are named, and no others.
type namespaces map[string]bool

func (n namespaces) Get(_ context.Context, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	if n[key.Name] {
		return nil
	}
	return apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, key.Name)
}

func (namespaces) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errors.New("nobody lists")
}

// A circuit breaker that waits for one namespace takes a second look at others that go all at once meanwhile.
func TestBrakeLooksAgain(t *testing.T) {
	b := NewBreaker(namespaces{"shop": true}, func(netip.Addr) []node.Claim { return nil }, func(string) {},
		slog.New(slog.DiscardHandler))
	due := func(namespace string, from, n byte) (all []suspect) {
		for i := range n {
			all = append(all, suspect{lease: lease.Lease{
				Addr: netip.AddrFrom4([4]byte{10, 0, 0, from + i}), State: lease.Active, Version: 1,
				Holder: lease.Holder{Namespace: namespace, PodName: fmt.Sprint(i)},
			}})
		}
		return all
	}
	passes := func(all []suspect, want int) {
		t.Helper()
		if got := b.passes(t.Context(), all, 100, time.Now()); len(got) != want {
			t.Errorf("%d of %d pass, want %d", len(got), len(all), want)
		}
	}
	lost, later := due("lost", 1, breakerCount+1), due("shop", 101, breakerCount+1)
	passes(lost, 0)
	passes(lost, 0)
	both := slices.Concat(lost, later)
	passes(both, 0)
	for i := range later { // the gateway of their pool has changed: all were written, and nobody has asked for them
		later[i].lease.BoundVersion, later[i].lease.Version = later[i].lease.Bound(), 2
	}
	passes(slices.Concat(lost, later), len(later))
	for i := range later {
		later[i].lease.BoundVersion, later[i].lease.Version = 0, 3
	}
	passes(slices.Concat(lost, later), 0) // they were bound anew
}

// A lease whose write a policy forbids is no reason to leave the others; a role that is missing is.
func TestItsOwn(t *testing.T) {
	ips := schema.GroupResource{Group: "networkextension.bkbcs.tencent.com", Resource: "bcsnetips"}
	for name, tc := range map[string]struct {
		err  error
		want bool
	}{
		"a policy": {apierrors.NewForbidden(ips, "10.0.0.1", errors.New("ValidatingAdmissionPolicy 'keep' denied request: it is kept")), true},
		"a role": {apierrors.NewForbidden(ips, "10.0.0.1",
			errors.New(
				`User "system:serviceaccount:bcsnet-system:bcsnet-controller" cannot update resource "bcsnetips" in API group "networkextension.bkbcs.tencent.com" at the cluster scope`)), false},
		"what is stored": {apierrors.NewBadRequest("it is broken"), true},
		"the API server": {apierrors.NewInternalError(errors.New("etcd is away")), false},
	} {
		if got := itsOwn(fmt.Errorf("writing: %w", tc.err)); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}
