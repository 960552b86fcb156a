package http_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

// noPools cuts whatever is about pools: the replica behind it keeps the picture of them that it has.
func noPools(_ *apiProxy, _ http.ResponseWriter, r *http.Request) bool {
	if strings.Contains(r.URL.Path, "/bcsnetpools") {
		panic(http.ErrAbortHandler)
	}
	return false
}

// Rule 9: a replica that does not know yet that a pool was deleted hands out one more address of it. That
// lease stays valid, and the pool waits for it, although the deletion saw nothing held.
func TestPoolDeletionAgainstALaggingReplica(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	pool := s.pool(2, nil)
	s.pod("late")
	proxy := newProxy(t, shared.cluster)
	lagging := startFor(t, proxy.config(), nil).caller()
	controlplane.Eventually(t, func() error { // a pool that its reconciler has not seen goes at once
		err := shared.admin.Get(t.Context(), client.ObjectKeyFromObject(pool), pool)
		if err == nil && !slices.Contains(pool.Finalizers, v1.PoolFinalizer) {
			err = fmt.Errorf("finalizers %v", pool.Finalizers)
		}
		return err
	})
	proxy.set(noPools)
	proxy.api.Cut()
	if err := shared.admin.Delete(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	controlplane.Eventually(t, func() error { // the one that knows, once it does
		early := s.request(newID(), "late")
		if a := s.add(early); a.Reason != "PoolCordoned" {
			s.del(early)
			return fmt.Errorf("%s", a.Raw)
		}
		return nil
	})
	body := s.request(newID(), "late")
	given := ips(lagging.do(t, "POST", prefix, body).done(t))
	if len(given) != 1 {
		t.Fatalf("given: %v", given)
	}
	controlplane.Eventually(t, func() error {
		var p v1.BCSNetPool
		if err := shared.admin.Get(t.Context(), client.ObjectKeyFromObject(pool), &p); err != nil {
			return err
		}
		c := meta.FindStatusCondition(p.Status.Conditions, v1.ConditionDraining)
		if c == nil || !strings.Contains(c.Message, "the pool goes when 1 address in use is released") {
			return fmt.Errorf("condition %+v", c)
		}
		return nil
	})
	for _, call := range []caller{s.call, lagging} {
		if got := ips(call.do(t, "POST", prefix, body).done(t)); got[0] != given[0] {
			t.Errorf("%v, want %v", got, given)
		}
	}
	s.del(body).done(t)
	controlplane.Eventually(t, func() error {
		err := shared.admin.Get(t.Context(), client.ObjectKeyFromObject(pool), &v1.BCSNetPool{})
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("pool %s is still there: %w", pool.Name, err)
		}
		return nil
	})
}
