package http_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bcsnet/bcsnet/pkg/controller"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

// The same requests at once to two replicas that each answer by themselves: each container has one address, and all
// are told the same; also when both lead, and the pool grows and shrinks meanwhile.
func TestReplicasAgree(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*controller.Options){
		"a leader and a follower": nil,
		"two that lead":           func(o *controller.Options) { o.LeaderElect = false },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			agree(t, startFor(t, account(t, shared.cluster), change).caller())
		})
	}
}

// agree asks the shared controller and another one at once.
func agree(t *testing.T, other caller) {
	t.Helper()
	s := newSite(t)
	pool := s.pool(24, nil) // enough for what two replicas choose at the same time
	controlplane.Eventually(t, func() error {
		if a := other.do(t, "GET", prefix+"/pool/"+s.Namespace, nil); a.Code != 0 {
			return fmt.Errorf("%s", a.Raw)
		}
		return nil
	})
	const pods, each = 10, 3
	var all sync.WaitGroup
	answers := make([][]result, pods)
	bodies := make([]object, pods)
	for i := range pods {
		name := fmt.Sprintf("web-%d", i)
		s.pod(name)
		bodies[i] = s.request(newID(), name)
		answers[i] = make([]result, 2*each)
		for j := range 2 * each {
			call := []caller{s.call, other}[j%2]
			all.Go(func() {
				answers[i][j] = call.untilAnswered(t.Context(), bodies[i])
			})
		}
	}
	for i := range 6 {
		patch := fmt.Sprintf(`{"spec":{"excludeIPs":[%q],"priority":%d}}`, s.ip(30+i%2), i)
		if err := shared.admin.Patch(t.Context(), pool, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
			t.Error(err)
		}
	}
	all.Wait()
	seen := map[string]int{}
	for i := range pods {
		told := map[string]bool{}
		for _, r := range answers[i] {
			told[ips(r.must(t).done(t))[0]] = true
		}
		held := active(t, shared.admin, bodies[i]["containerID"].(string))
		if len(told) != 1 || len(held) != 1 || !told[held[0]] {
			t.Errorf("web-%d: told %v, Active are %v", i, told, held)
		}
		for _, a := range held {
			seen[a]++
		}
	}
	for a, n := range seen {
		if n > 1 {
			t.Errorf("%s is held %d times", a, n)
		}
	}
	// Whoever is asked to release, both know.
	for i := range pods {
		if got := ips([]caller{s.call, other}[i%2].do(t, "DELETE", prefix, bodies[i]).done(t)); len(got) != 1 {
			t.Errorf("web-%d: DEL freed %v", i, got)
		}
	}
	for _, call := range []caller{s.call, other} {
		controlplane.Eventually(t, func() error {
			if got := addressesOf(call.get(t, "/host/"+s.Host)); !slices.Equal(got, []string{}) {
				return fmt.Errorf("still held: %v", got)
			}
			return nil
		})
	}
}

// untilAnswered asks for an address until there is time to answer, as a plugin does.
func (c caller) untilAnswered(ctx context.Context, body object) (r result) {
	for {
		if r.answer, r.err = c.send(ctx, "POST", prefix, body); r.err != nil || r.Reason != ipam.ReasonUnavailable {
			return r
		}
		select {
		case <-time.After(time.Second): // Retry-After
		case <-ctx.Done():
			return r
		}
	}
}
