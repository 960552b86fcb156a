//go:build linux

package node

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/node/bed"
)

// wantLeases waits until the active leases of the pods, which are ready, are those of their addresses, and no others.
func (x *tenant) wantLeases(t *testing.T, pods ...*corev1.Pod) {
	t.Helper()
	controlplane.EventuallyWithin(t, 90*time.Second, func() error {
		want, names := map[netip.Addr]string{}, map[string]bool{}
		for _, pod := range pods {
			names[pod.Name] = true
			addrs, err := bed.Addresses(pod)
			if err != nil {
				return err
			}
			for _, addr := range addrs {
				if other, twice := want[addr]; twice {
					return fmt.Errorf("%s is an address of the pods %s and %s", addr, other, pod.Name)
				}
				want[addr] = pod.Name
			}
		}
		leases := &v1.BCSNetIPList{}
		if err := x.List(t.Context(), leases); err != nil {
			return err
		}
		var errs []error
		for i := range leases.Items {
			l := &leases.Items[i]
			if l.Status.Status != v1.IPActive || l.Status.PodNamespace != x.namespace || !names[l.Status.PodName] {
				continue
			}
			addr, err := netip.ParseAddr(cmp.Or(l.Spec.Address, l.Name))
			if err != nil {
				return err
			}
			if name := want[addr]; name != l.Status.PodName {
				errs = append(errs, fmt.Errorf("%s is held for %q, want %q", addr, l.Status.PodName, name))
			}
			delete(want, addr)
		}
		for addr, name := range want {
			errs = append(errs, fmt.Errorf("nobody holds %s, which the pod %s has", addr, name))
		}
		return errors.Join(errs...)
	})
}
