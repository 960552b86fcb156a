package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

const spiderObjects = `
apiVersion: spiderpool.spidernet.io/v2beta1
kind: SpiderIPPool
metadata: {name: blue}
spec: {ipVersion: 4, subnet: 10.1.0.0/24, gateway: 10.1.0.1, default: true, ips: [10.1.0.20-10.1.0.59], excludeIPs: [10.1.0.30], later: {field: 1}}
---
apiVersion: spiderpool.spidernet.io/v2beta1
kind: SpiderReservedIP
metadata: {name: printers}
spec: {ipVersion: 4, ips: [10.1.0.35-10.1.0.36]}
`

// crd returns the manifest of a kind that takes every field.
func crd(group, version, kind, plural, scope string) string {
	return fmt.Sprintf(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[4]s.%[1]s}
spec:
  group: %[1]s
  names: {kind: %[3]s, listKind: %[3]sList, plural: %[4]s, singular: %[5]s}
  scope: %[6]s
  versions:
  - name: %[2]s
    served: true
    storage: true
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---`, group, version, kind, plural, strings.ToLower(kind), scope)
}

// haveObjects makes kinds and objects of another system until the test ends.
func (f *fixture) haveObjects(t *testing.T, crds, objects string) {
	t.Helper()
	kubectl := func(ctx context.Context, input string, args ...string) {
		cmd := cluster.Kubectl(ctx, args...)
		cmd.Stdin = strings.NewReader(input)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("kubectl %v: %v\n%s", args, err, out)
		}
	}
	kubectl(t.Context(), crds, "create", "-f", "-")
	t.Cleanup(func() { kubectl(context.Background(), crds, "delete", "-f", "-") })
	kubectl(t.Context(), crds, "wait", "--for=condition=Established", "-f", "-")
	kubectl(t.Context(), objects, "create", "-f", "-")
}

// owners notes who has which address, whatever system gave it.
type owners struct {
	sync.Mutex
	of    map[string]string
	twice []string
	given map[string]int // by system
}

func (o *owners) got(system, address, who string) {
	o.Lock()
	defer o.Unlock()
	if other, taken := o.of[address]; taken {
		o.twice = append(o.twice, fmt.Sprintf("%s gave %s to %s, and %s has it", system, address, who, other))
	}
	o.of[address] = who
	o.given[system]++
}

// gone notes it before the address is given up.
func (o *owners) gone(address string) {
	o.Lock()
	defer o.Unlock()
	delete(o.of, address)
}

func (o *owners) count(system string) int {
	o.Lock()
	defer o.Unlock()
	return o.given[system]
}

// spiderpool allocates as its agents do: at random among the addresses of the pool that are neither allocated nor
// reserved, and it stores the allocation in the pool's status with the version that it read. Reservations come from a
// cache.
type spiderpool struct {
	api dynamic.Interface

	mu       sync.Mutex
	reserved []string
}

func (s *spiderpool) kind(resource string) dynamic.NamespaceableResourceInterface {
	return s.api.Resource(schema.GroupVersionResource{Group: "spiderpool.spidernet.io", Version: "v2beta1", Resource: resource})
}

// watch keeps the cache of reservations, up to a fifth of a second behind.
func (s *spiderpool) watch(ctx context.Context) {
	for ctx.Err() == nil {
		if all, err := s.kind("spiderreservedips").List(ctx, metav1.ListOptions{}); err == nil {
			var reserved []string
			for _, o := range all.Items {
				ips, _, _ := unstructured.NestedStringSlice(o.Object, "spec", "ips")
				reserved = append(reserved, ips...)
			}
			s.mu.Lock()
			s.reserved = reserved
			s.mu.Unlock()
		}
		select {
		case <-ctx.Done():
		case <-time.After(200 * time.Millisecond):
		}
	}
}

type spiderAllocation struct {
	Interface string `json:"interface"`
	Pod       string `json:"pod"`
	UID       string `json:"podUid"`
}

// free reads the pool and what it can give.
func (s *spiderpool) free(ctx context.Context) (
	pool *unstructured.Unstructured, allocated map[string]spiderAllocation, free []string, err error,
) {
	s.mu.Lock()
	reserved := s.reserved
	s.mu.Unlock()
	if pool, err = s.kind("spiderippools").Get(ctx, "blue", metav1.GetOptions{}); err != nil {
		return nil, nil, nil, err
	}
	allocated = map[string]spiderAllocation{}
	if text, _, _ := unstructured.NestedString(pool.Object, "status", "allocatedIPs"); text != "" {
		if err := json.Unmarshal([]byte(text), &allocated); err != nil {
			return nil, nil, nil, err
		}
	}
	excluded, _, _ := unstructured.NestedStringSlice(pool.Object, "spec", "excludeIPs")
	ips, _, _ := unstructured.NestedStringSlice(pool.Object, "spec", "ips")
	set := ipaddr.Subtract(ranges(ips), ranges(excluded), ranges(reserved))
	for a := range ipaddr.All(set) {
		if _, taken := allocated[a.String()]; !taken {
			free = append(free, a.String())
		}
	}
	return pool, allocated, free, nil
}

// store stores allocations with the version of the pool that was read.
func (s *spiderpool) store(
	ctx context.Context, pool *unstructured.Unstructured, allocated map[string]spiderAllocation,
) error {
	text, err := json.Marshal(allocated)
	if err != nil {
		return err
	}
	if err := unstructured.SetNestedField(pool.Object, string(text), "status", "allocatedIPs"); err != nil {
		return err
	}
	_, err = s.kind("spiderippools").UpdateStatus(ctx, pool, metav1.UpdateOptions{})
	return err
}

var errNoneFree = errors.New("no address is free")

func (s *spiderpool) allocate(ctx context.Context, p *corev1.Pod) (address string, err error) {
	for ctx.Err() == nil {
		pool, allocated, free, err := s.free(ctx)
		if err != nil {
			return "", err
		}
		if len(free) == 0 {
			return "", errNoneFree
		}
		address = free[rand.IntN(len(free))]
		allocated[address] = spiderAllocation{Interface: "eth0", Pod: p.Namespace + "/" + p.Name, UID: string(p.UID)}
		if err = s.store(ctx, pool, allocated); !apierrors.IsConflict(err) {
			return address, err
		}
	}
	return "", ctx.Err()
}

func (s *spiderpool) release(ctx context.Context, address string) error {
	for ctx.Err() == nil {
		pool, allocated, _, err := s.free(ctx)
		if err != nil {
			return err
		}
		delete(allocated, address)
		if err = s.store(ctx, pool, allocated); !apierrors.IsConflict(err) {
			return err
		}
	}
	return ctx.Err()
}
