package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go4.org/netipx"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

const whereaboutsBoth = `
apiVersion: k8s.cni.cncf.io/v1
kind: NetworkAttachmentDefinition
metadata: {name: lan, namespace: default}
spec:
  config: '{"cniVersion":"1.0.0","name":"lan","plugins":[{"type":"macvlan","master":"eth1","ipam":{"type":"whereabouts","range":"10.1.0.20-10.1.0.59/24","exclude":["10.1.0.30/32"],"gateway":"10.1.0.1"}},{"type":"tuning"}]}'
---
apiVersion: whereabouts.cni.cncf.io/v1alpha1
kind: IPPool
metadata: {name: 10.1.0.0-24, namespace: default}
spec: {range: 10.1.0.0/24, allocations: {}}
`

// whereabouts allocates as its plugin does: it has the configuration from the beginning of the ADD, takes the first
// address that is neither allocated nor excluded, and stores it in the IPPool with the version that it read. After a
// conflict it reads the IPPool again, not the configuration.
type whereabouts struct {
	definitions, pools dynamic.ResourceInterface
}

func (b *bothSystems) whereabouts() whereabouts {
	kind := func(group, version, resource string) dynamic.ResourceInterface {
		return b.dynamic.Resource(schema.GroupVersionResource{Group: group, Version: version, Resource: resource}).
			Namespace("default")
	}
	return whereabouts{kind("k8s.cni.cncf.io", "v1", "network-attachment-definitions"),
		kind("whereabouts.cni.cncf.io", "v1alpha1", "ippools")}
}

// excluded reads what the definition excludes.
func (w whereabouts) excluded(ctx context.Context) (*netipx.IPSet, error) {
	o, err := w.definitions.Get(ctx, "lan", metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	text, _, _ := unstructured.NestedString(o.Object, "spec", "config")
	var config struct {
		Plugins []struct {
			IPAM struct {
				Exclude []string `json:"exclude"`
			} `json:"ipam"`
		} `json:"plugins"`
	}
	if err := json.Unmarshal([]byte(text), &config); err != nil {
		return nil, err
	}
	return ranges(config.Plugins[0].IPAM.Exclude), nil
}

// change changes the allocations until they are stored.
func (w whereabouts) change(ctx context.Context, f func(allocations map[string]any) error) error {
	for ctx.Err() == nil {
		pool, err := w.pools.Get(ctx, "10.1.0.0-24", metav1.GetOptions{})
		if err != nil {
			return err
		}
		allocations, _, _ := unstructured.NestedMap(pool.Object, "spec", "allocations")
		if allocations == nil {
			allocations = map[string]any{}
		}
		if err := f(allocations); err != nil {
			return err
		}
		if err := unstructured.SetNestedMap(pool.Object, allocations, "spec", "allocations"); err != nil {
			return err
		}
		if _, err = w.pools.Update(ctx, pool, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
			return err
		}
	}
	return ctx.Err()
}

func (w whereabouts) allocate(ctx context.Context, p *corev1.Pod) (address string, err error) {
	excluded, err := w.excluded(ctx)
	if err != nil {
		return "", err
	}
	return address, w.change(ctx, func(allocations map[string]any) error {
		for a := range ipaddr.All(ipaddr.Subtract(ranges([]string{"10.1.0.20-10.1.0.59"}), excluded)) {
			offset := strconv.Itoa(int(a.As4()[3]))
			if allocations[offset] == nil {
				address = a.String()
				allocations[offset] = map[string]any{
					"id": "c-" + p.Name, "podref": p.Namespace + "/" + p.Name, "ifname": "eth0",
				}
				return nil
			}
		}
		return errNoneFree
	})
}

func (w whereabouts) release(ctx context.Context, address string) error {
	return w.change(ctx, func(allocations map[string]any) error {
		delete(allocations, address[strings.LastIndex(address, ".")+1:])
		return nil
	})
}

// TestCutOverFromWhereabouts: the same from Whereabouts, whose plugin has its configuration from before the withdrawal.
func TestCutOverFromWhereabouts(t *testing.T) {
	controlplane.TakesLong(t)
	b := haveBothSystems(t, crd("whereabouts.cni.cncf.io", "v1alpha1", "IPPool", "ippools", "Namespaced")+
		crd("k8s.cni.cncf.io", "v1", "NetworkAttachmentDefinition", "network-attachment-definitions", "Namespaced"),
		whereaboutsBoth)
	w := b.whereabouts()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	give := b.by("whereabouts", func(p *corev1.Pod) (string, error) { return w.allocate(ctx, p) })
	_, kept, err := b.runs(ctx, "web", "node-1", give)
	if err != nil {
		t.Fatal(err)
	}
	before, err := w.definitions.Get(ctx, "lan", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		b.churn(t, ctx, fmt.Sprintf("theirs-%d", i), "node-2", give,
			func(_ *corev1.Pod, address string) error { return w.release(context.Background(), address) })
	}
	there := []string{"import", "whereabouts", "--cut-over", "node-1", "--addresses", "30", "--settle", "3s", "--settle-short", "--yes"}
	contains(t, b.run(t, there...), "read back: every address belongs to one system")
	b.run(t, "pool", "uncordon", "lan")
	ours, stopOurs := context.WithCancel(ctx)
	defer stopOurs()
	for i := range 3 {
		b.churn(t, ours, fmt.Sprintf("ours-%d", i), "node-1", b.byUs(ctx), b.giveUp)
	}
	b.handOut(t, "whereabouts", 20)
	b.run(t, "import", "revert", "whereabouts", "--cut-over", "node-1", "--addresses", "4", "--yes")
	b.handOut(t, "whereabouts", 20)
	contains(t, b.run(t, there...), "read back: every address belongs to one system")
	b.handOut(t, "whereabouts", 20)
	stopOurs()
	b.untilFree(t, kept)
	b.run(t, "import", "revert", "whereabouts", "--yes")
	stop()
	b.stop()
	b.workers.Wait()
	after, err := w.definitions.Get(t.Context(), "lan", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var configs [2]map[string]any
	for i, o := range []*unstructured.Unstructured{before, after} {
		text, _, _ := unstructured.NestedString(o.Object, "spec", "config")
		if err := json.Unmarshal([]byte(text), &configs[i]); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(configs[0], configs[1]); diff != "" || len(after.GetAnnotations()) > 0 {
		t.Errorf("the definition is not as before: %v (-before +after):\n%s", after.GetAnnotations(), diff)
	}
	if len(b.twice) > 0 {
		t.Errorf("%s", strings.Join(b.twice, "\n"))
	}
}
