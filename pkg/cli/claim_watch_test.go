package cli

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
)

// TestWatchClaims: two claims of one name, in two namespaces, are two lines, and one of them goes alone.
func TestWatchClaims(t *testing.T) {
	f := newFixture(t)
	if err := f.wipe(t.Context()); err != nil {
		t.Fatal(err)
	}
	claimIn := func(namespace string) *v1.BCSNetIPClaim {
		c := &v1.BCSNetIPClaim{}
		c.Namespace, c.Name = namespace, "web"
		if err := f.client.Create(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		return c
	}
	first := claimIn("default")
	list := f.start(t, "claim", "list", "-A", "--watch")
	list.next(t, "EVENT NAME", "- web - default")
	second := claimIn("kube-system")
	list.next(t, "ADDED web - kube-system")
	first.Status.Usage = "1/2"
	if err := f.client.Status().Update(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	list.next(t, "MODIFIED web - default 1/2")
	if err := f.client.Delete(t.Context(), second); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	list.next(t, "DELETED web - kube-system")
	list.interrupt(t)

	one := f.start(t, "claim", "list", "-n", "default", "--watch", "--no-headers")
	one.next(t, "- web - default 1/2")
	claimIn("kube-system")
	if err := f.client.Delete(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	one.next(t, "DELETED web - default")
	one.interrupt(t)
}
