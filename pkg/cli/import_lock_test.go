package cli

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bcsnet/bcsnet/test/controlplane"
)

// TestOneCutOverAtATime: while a run holds the Lease, a cut-over and the way back are refused. They take
// the Lease over when that run has been killed, whatever the clock of its machine said, and release it at their end.
func TestOneCutOverAtATime(t *testing.T) {
	controlplane.TakesLong(t)
	f := newFixture(t)
	const name = "bcsnet-import"
	leases := f.kubernetes.CoordinationV1().Leases(controlplane.SystemNamespace)
	if err := leases.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	now := metav1.NowMicro()
	held, err := leases.Create(t.Context(), &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: new("ann@laptop/1"), LeaseDurationSeconds: new(int32(20)), AcquireTime: &now, RenewTime: &now,
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	lives, dies := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(dies)
		for {
			select {
			case <-lives:
				return
			case <-time.After(100 * time.Millisecond):
			}
			held.Spec.RenewTime = new(metav1.NewMicroTime(time.Now().Add(-time.Hour))) // its clock is slow
			if held, err = leases.Update(t.Context(), held, metav1.UpdateOptions{}); err != nil {
				t.Error(err)
				return
			}
		}
	}()
	for _, args := range [][]string{
		{"import", "spiderpool", "--cut-over", "nowhere", "--yes"},
		{"import", "revert", "spiderpool", "--cut-over", "nowhere", "--yes"},
		{"import", "revert", "spiderpool", "--yes"},
	} {
		_, stderr := f.call(t, args...)
		contains(t, stderr, "ann@laptop/1 holds Lease "+name+" since", "one run at a time", "hint: wait for its end", "[exit 1]")
	}
	_, stderr := f.call(t, "import", "spiderpool", "--cut-over", "nowhere", "--dry-run=client")
	contains(t, stderr, "there is no node nowhere") // it changes nothing
	close(lives)
	<-dies
	_, stderr = f.call(t, "import", "spiderpool", "--cut-over", "nowhere", "--yes")
	contains(t, stderr, "waiting to see whether ann@laptop/1 still runs", "there is no node nowhere")
	after, err := leases.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if holder := after.Spec.HolderIdentity; holder != nil && *holder != "" {
		t.Errorf("%s still holds the Lease", *holder)
	}
	_, stderr = f.call(t, "import", "revert", "spiderpool", "--cut-over", "nowhere", "--yes")
	contains(t, stderr, "there is no node nowhere")
}
