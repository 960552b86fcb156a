//go:build linux

package node

import (
	"fmt"
	"testing"

	"github.com/bcsnet/bcsnet/test/controlplane"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/test/node/bed"
)

// TestPodsReachEachOther has pods on both nodes, in each network that this kernel has links for.
func TestPodsReachEachOther(t *testing.T) {
	t.Parallel()
	x := newTenant(t)
	for name, network := range map[string]string{"bridge": bridged, "macvlan": macvlan} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			one, two := x.create(t, name+"-1", "n1", network), x.create(t, name+"-2", "n2", network)
			a, b := x.ready(t, one), x.ready(t, two)
			if !a.v4.IsValid() || !a.v6.IsValid() || !b.v4.IsValid() || !b.v6.IsValid() {
				t.Errorf("addresses %v and %v, want one of each family", a, b)
			}
			x.reaches(t, a, b, two.Name)
			x.reaches(t, b, a, one.Name)
			x.wantLeases(t, one, two)
		})
	}
}

// TestOneFamily has a pod that wants an IPv4 address alone, beside one of two families.
func TestOneFamily(t *testing.T) {
	t.Parallel()
	x := newTenant(t)
	single := bed.Pod(x.namespace, "single", "n1")
	single.Annotations = map[string]string{v1.GroupVersion.Group + "/ip-family-policy": "SingleStack",
		v1.GroupVersion.Group + "/ip-families": "IPv4"}
	if err := x.Create(t.Context(), single); err != nil {
		t.Fatal(err)
	}
	both := x.create(t, "both", "n2", bridged)
	a, b := x.ready(t, single), x.ready(t, both)
	if a.v6.IsValid() || !a.v4.IsValid() {
		t.Errorf("addresses %v, want one of IPv4", a)
	}
	x.reaches(t, b, a, "single")
	x.reaches(t, a, b, "both")
}

// TestManyPodsAtOnce starts 20 pods over both nodes at the same time, and ends them so.
func TestManyPodsAtOnce(t *testing.T) {
	controlplane.TakesLong(t)
	x := newTenant(t)
	var pods []*corev1.Pod
	for i := range 20 {
		pods = append(pods, x.create(t, fmt.Sprintf("pod-%02d", i), fmt.Sprintf("n%d", 1+i%2), bridged))
	}
	all := make([]addresses, len(pods))
	for i, pod := range pods {
		all[i] = x.ready(t, pod)
	}
	for i := range pods {
		next := (i + 1) % len(pods)
		x.reaches(t, all[i], all[next], pods[next].Name)
	}
	x.wantLeases(t, pods...)
}
