package pools_test

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

// TestLostWhileOthersAsk: the object of an address in use is deleted by somebody who takes its finalizer off.
// Nobody else gets the address, however many ask for one, and the holder has it again.
func TestLostWhileOthersAsk(t *testing.T) {
	const size = 4
	p := newPool(t, "lost", nil, "10.36.0.1-10.36.0.4")
	wantStatus(t, p, size, size, 0)
	holders := map[string]string{} // address → pod
	for i := range size {
		name := fmt.Sprintf("lost-%d", i)
		newPod(t, name)
		a := ask(t, http.MethodPost, name, "")
		if a.Code != 0 {
			t.Fatal(a.Message)
		}
		holders[a.Address.IPAddr] = name
		report(t, name, a.Address.IPAddr)
	}
	const rivals = 8
	for i := range rivals {
		newPod(t, fmt.Sprintf("rival-%d", i))
	}
	var asking sync.WaitGroup
	var over atomic.Bool
	for i := range rivals {
		asking.Go(func() {
			for !over.Load() {
				if a := ask(t, http.MethodPost, fmt.Sprintf("rival-%d", i), ""); a.Code == 0 {
					t.Errorf("%s, which %s has, was given away", a.Address.IPAddr, holders[a.Address.IPAddr])
					return
				}
			}
		})
	}
	var versions []string
	for range 3 {
		for addr, pod := range holders {
			o := &v1.BCSNetIP{}
			o.Name = addr
			if err := admin.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
				t.Fatal(err)
			}
			uid := o.UID
			noFinalizers := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
			if err := admin.Patch(t.Context(), o, noFinalizers); err != nil {
				t.Fatal(err)
			}
			if err := admin.Delete(t.Context(), o); err != nil {
				t.Fatal(err)
			}
			controlplane.EventuallyWithin(t, patience, func() error {
				if err := admin.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
					return err
				}
				if o.UID == uid || o.Status.Status != v1.IPActive || o.Status.PodName != pod || o.Status.ContainerID != "sandbox-"+
					pod {
					return fmt.Errorf("%s is %+v, want that %s has it again", addr, o.Status, pod)
				}
				return nil
			})
			versions = append(versions, o.ResourceVersion)
		}
	}
	over.Store(true)
	asking.Wait()
	t.Logf("restored at %v", versions)
	for addr, pod := range holders {
		if a := ask(t, http.MethodPost, pod, ""); a.Code != 0 || a.Address.IPAddr != addr {
			t.Errorf("%s has %q (%s), want %s", pod, a.Address.IPAddr, a.Message, addr)
		}
	}
	wantStatus(t, p, size, 0, size)
	controlplane.EventuallyWithin(t, patience, func() error {
		if got := eventsOf(t, p); !slices.Contains(got, "Warning "+v1.ReasonAddressRestored) {
			return fmt.Errorf("the events are %v", got)
		}
		return nil
	})
	for addr, pod := range holders {
		if a := ask(t, http.MethodDelete, pod, ""); a.Code != 0 {
			t.Errorf("%s: %s", addr, a.Message)
		}
	}
}
