package http_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/intercept"
)

// TestReceiptOfADeletedAddress has a node show the receipt of an address whose object is deleted. The API server is
// asked about that receipt once, and not at each request.
func TestReceiptOfADeletedAddress(t *testing.T) {
	t.Parallel()
	s, p, _ := behindProxy(t)
	owner := s.owner("first")
	given := s.add(object{"host": s.Host, "owner": owner})
	address, receipt := given.done(t)["ipAddr"].(string), given.Header.Get("Bcsnet-Receipt")
	if receipt == "" {
		t.Fatal("an ADD has no receipt")
	}
	s.del(object{"host": s.Host, "owner": owner}).done(t)
	controlplane.Eventually(t, func() error {
		var pool v1.BCSNetPool
		if err := shared.admin.Get(t.Context(), client.ObjectKey{Name: s.Namespace}, &pool); err != nil {
			return err
		}
		pool.Spec.AvailableIPs = slices.DeleteFunc(pool.Spec.AvailableIPs, func(a string) bool { return a == address })
		return shared.admin.Update(t.Context(), &pool)
	})
	controlplane.Eventually(t, func() error {
		err := shared.admin.Get(t.Context(), client.ObjectKey{Name: address}, &v1.BCSNetIP{})
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("%s is still there: %w", address, err)
		}
		if a := s.call.do(t, "GET", prefix+"/ip/"+address, nil); a.Code == 0 {
			return errors.New(string(a.Raw))
		}
		return nil
	})
	var reads atomic.Int64
	p.set(func(_ *apiProxy, _ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/bcsnetips") && !intercept.Watches(r) {
			reads.Add(1)
		}
		return false
	})
	for range 5 {
		s.call.do(t, "GET", prefix+"/pool/"+s.Namespace, nil, "Bcsnet-Receipt", receipt)
	}
	if n := reads.Load(); n != 2 { // the object, and the version of the newest state
		t.Errorf("%d reads of the API server for five requests, want 2", n)
	}
}
