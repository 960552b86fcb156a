package http_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/controller"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

// splitPool makes a pool of the first addresses of the site's subnet in blocks of a length, and returns when the
// controllers know it.
func (s *site) splitPool(size string, length int32, also ...caller) *v1.BCSNetPool {
	s.t.Helper()
	p := s.makePool(&v1.BCSNetPool{ObjectMeta: metav1.ObjectMeta{Name: s.Namespace}, Spec: v1.BCSNetPoolSpec{
		Net: s.ip(0), Mask: 24, Gateway: s.ip(1), Hosts: []string{s.Host}, AvailableIPs: []string{s.ip(0) + size},
		Namespaces: []string{s.Namespace}, BlockSize: length, AutoAssign: true,
	}}, nil)
	for _, call := range also {
		controlplane.Eventually(s.t, func() error {
			if a := call.do(s.t, "GET", prefix+"/pool/"+s.Namespace, nil); a.Code != 0 {
				return fmt.Errorf("%s", a.Raw)
			}
			return nil
		})
	}
	return p
}

// blocks returns the owners of the site's blocks by their names.
func (s *site) blocks() map[string]string {
	s.t.Helper()
	var list v1.BCSNetPoolList
	if err := shared.admin.List(s.t.Context(), &list); err != nil {
		s.t.Fatal(err)
	}
	owners := map[string]string{}
	for _, p := range list.Items {
		if p.Spec.Parent == s.Namespace {
			owners[p.Name] = strings.Join(p.Spec.Namespaces, ",")
		}
	}
	return owners
}

// TestBlocksOfANewNamespace: 200 pods of a namespace without a block ask two replicas at once, each of which answers by
// itself. It gets exactly as many blocks as it needs, and no address is given twice.
func TestBlocksOfANewNamespace(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*controller.Options){
		"a leader and a follower": nil,
		"two that lead":           func(o *controller.Options) { o.LeaderElect = false },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			other := startFor(t, account(t, shared.cluster), change).caller()
			s := newSite(t)
			s.splitPool("/24", 27, other)
			const pods = 200
			var all sync.WaitGroup
			results := make([]result, pods)
			for i := range pods {
				name := fmt.Sprintf("web-%d", i)
				s.pod(name)
				body := s.request(newID(), name)
				call := []caller{s.call, other}[i%2]
				all.Go(func() {
					for range 5 { // as kubelet does
						a, err := call.send(t.Context(), "POST", prefix, body)
						if results[i] = (result{a, err}); err == nil && a.Code == 0 {
							return
						}
					}
				})
			}
			all.Wait()
			pools := map[string]int{}
			seen := map[string]int{}
			for _, r := range results {
				data := r.must(t).done(t)
				addr := ips(data)[0]
				if seen[addr]++; seen[addr] > 1 {
					t.Errorf("%s is given twice", addr)
				}
				pools[data["pool"].(string)]++
			}
			blocks := s.blocks()
			if len(blocks) != 7 { // of 30 to 32 addresses each
				t.Errorf("%d blocks: %v", len(blocks), slices.Sorted(maps.Keys(blocks)))
			}
			for name, owner := range blocks {
				if owner != s.Namespace || pools[name] == 0 {
					t.Errorf("block %s of %s has %d of the addresses", name, owner, pools[name])
				}
			}
		})
	}
}

// TestBlockByHand: what was changed and deleted by hand under the controller's feet, until no block is left.
func TestBlockByHand(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	parent := s.splitPool("/28", 30) // four blocks of four addresses, less the network's and the gateway's
	body, first := s.given("a")
	blocks := slices.Collect(maps.Keys(s.blocks()))
	if len(blocks) != 1 {
		t.Fatalf("blocks %v", blocks)
	}
	name := blocks[0]

	// A change of the parent is the block's, and writes no block.
	var before, after v1.BCSNetPool
	key := client.ObjectKey{Name: name}
	if err := shared.admin.Get(t.Context(), key, &before); err != nil {
		t.Fatal(err)
	}
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"vlan":77,"mtu":1400}}`))
	if err := shared.admin.Patch(t.Context(), parent, patch); err != nil {
		t.Fatal(err)
	}
	// The pod's next container is given what the parent says now.
	controlplane.Eventually(t, func() error {
		body = with(body, "containerID", newID())
		if a := s.add(body); a.done(t)["vlan"] != 77.0 {
			return fmt.Errorf("%s", a.Raw)
		}
		return nil
	})
	if err := shared.admin.Get(t.Context(), key, &after); err != nil {
		t.Fatal(err)
	}
	if before.ResourceVersion != after.ResourceVersion {
		t.Errorf("block %s was written", name)
	}

	// Deleted by hand, a block keeps its lease; the next pods come from another one.
	if err := shared.admin.Delete(t.Context(), &before); err != nil {
		t.Fatal(err)
	}
	controlplane.Eventually(t, func() error {
		if a := s.add(object{"host": s.Host, "owner": newID(), "pool": name, "podNamespace": s.Namespace}); a.Code == 0 {
			return fmt.Errorf("%s", a.Raw)
		}
		return nil
	})
	if got := s.add(body).done(t)["ipAddr"]; got != first {
		t.Errorf("the pod had %s, and is answered %v", first, got)
	}
	if _, second := s.given("b"); len(s.blocks()) != 2 {
		t.Errorf("%s is of one of %v", second, s.blocks())
	}

	var last answer
	for i := range 16 {
		pod := fmt.Sprintf("c-%d", i)
		s.pod(pod)
		if last = s.add(s.request(newID(), pod)); last.Code != 0 {
			break
		}
	}
	last.refusedWith(t, "NoFreeBlock", "of its 4 blocks (/30), 4 are owned by namespaces")
}
