//go:build linux

package bed

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bcsnet/bcsnet/test/controlplane"
)

// create makes a pod and waits until it is ready. It goes with the test.
func create(t *testing.T, b *Bed, name, node string) (*corev1.Pod, []netip.Addr) {
	t.Helper()
	admin := b.Cluster.AdminFor(t)
	pod := Pod("default", name, node)
	if err := admin.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { remove(t, admin, pod) })
	return pod, ready(t, admin, pod)
}

// ready waits until a pod is ready, and returns its addresses.
func ready(t *testing.T, admin client.Client, pod *corev1.Pod) []netip.Addr {
	t.Helper()
	controlplane.Eventually(t, func() error {
		if err := admin.Get(t.Context(), client.ObjectKeyFromObject(pod), pod); err != nil {
			return err
		}
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
				return nil
			}
		}
		return fmt.Errorf("the pod %s is not ready: %+v", pod.Name, pod.Status)
	})
	addrs, err := Addresses(pod)
	if err != nil {
		t.Fatal(err)
	}
	return addrs
}

// remove deletes a pod and waits until its kubelet has ended it.
func remove(t *testing.T, admin client.Client, pod *corev1.Pod) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	if err := client.IgnoreNotFound(admin.Delete(ctx, pod)); err != nil {
		t.Error(err)
	}
	err := controlplane.WaitFor(ctx, time.Minute, func() error {
		if err := admin.Get(ctx, client.ObjectKeyFromObject(pod), pod); !apierrors.IsNotFound(err) {
			return errors.Join(err, fmt.Errorf("the pod %s is still there", pod.Name))
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestPodsOfTwoNodesReachEachOther(t *testing.T) {
	b := shared.For(t)
	_, one := create(t, b, "one", "n1")
	_, two := create(t, b, "two", "n2")
	if len(one) != 2 || len(two) != 2 {
		t.Fatalf("addresses %v and %v, want one of each family", one, two)
	}
	for i := range one {
		for _, way := range []struct {
			from, to netip.Addr
			name     string
		}{{one[i], two[i], "two"}, {two[i], one[i], "one"}} {
			answer, err := b.Reach(t.Context(), way.from, way.to)
			if err != nil || !strings.HasPrefix(answer, way.name+" at ") {
				t.Errorf("from %s to %s: %q, %v", way.from, way.to, answer, err)
			}
		}
	}
}

func TestANodeComesBack(t *testing.T) {
	b := shared.For(t)
	n := b.Node("n1")
	pod, before := create(t, b, "survivor", n.Name)
	if err := n.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Get(t.Context(), before[0], "/"); err == nil {
		t.Errorf("the pod at %s answers, and its node is dead", before[0])
	}
	if dirs := cgroupsLike(n.Cgroup); len(dirs) > 0 {
		t.Errorf("cgroups of the dead node: %q", dirs)
	}
	if err := n.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	controlplane.Eventually(t, func() error {
		after := ready(t, b.Cluster.AdminFor(t), pod)
		answer, err := b.Get(t.Context(), after[0], "/")
		if err == nil && !strings.HasPrefix(answer, "survivor at ") {
			err = fmt.Errorf("the pod at %s answers %q", after[0], answer)
		}
		return err
	})
	// The sandbox of the earlier life has been taken down: one address of each family is in use.
	controlplane.Eventually(t, func() error {
		if used := globbed(filepath.Join(n.Dir, "lib/cni/networks/underlay/*77*")); len(used) != 2 {
			return fmt.Errorf("host-local has %q in use, want one of each family", used)
		}
		return nil
	})
}

func TestContainerdDiesAndComesBack(t *testing.T) {
	b := shared.For(t)
	n := b.Node("n2")
	_, addrs := create(t, b, "patient", n.Name)
	if err := n.KillContainerd(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := n.KillContainerd(t.Context()); err == nil {
		t.Error("containerd was killed twice in one life")
	}
	if answer, err := b.Get(t.Context(), addrs[0], "/"); err != nil {
		t.Errorf("the pod does not answer without containerd: %q, %v", answer, err)
	}
	if err := n.StartContainerd(t.Context()); err != nil {
		t.Fatal(err)
	}
	create(t, b, "successor", n.Name)
}

func TestWhoHasFindsDuplicates(t *testing.T) {
	b := shared.For(t)
	const twice, once, never = "192.168.77.250", "192.168.77.251", "192.168.77.252"
	give := func(node, addr string) {
		t.Helper()
		for verb := range strings.SplitSeq("add,del", ",") {
			do := func(ctx context.Context) {
				r, err := b.Node(node).Run(ctx, Call{Args: []string{"ip", "addr", verb, addr + "/24", "dev", "br0"}})
				if err != nil || r.Code != 0 {
					t.Fatalf("ip addr %s %s on %s: %d, %s, %v", verb, addr, node, r.Code, r.Errors, err)
				}
			}
			if verb == "add" {
				do(t.Context())
			} else {
				t.Cleanup(func() { do(context.WithoutCancel(t.Context())) })
			}
		}
	}
	give("n1", twice)
	give("n2", twice)
	give("n2", once)
	got, err := b.WhoHas(t.Context(), netip.MustParseAddr(twice), netip.MustParseAddr(once), netip.MustParseAddr(never))
	if err != nil {
		t.Fatal(err)
	}
	one, two := mac(11).String(), mac(12).String()
	for addr, want := range map[string][]string{twice: {one, two}, once: {two}, never: nil} {
		if macs := got[netip.MustParseAddr(addr)]; !slices.Equal(macs, want) {
			t.Errorf("%s is answered by %q, want %q", addr, macs, want)
		}
	}
}
