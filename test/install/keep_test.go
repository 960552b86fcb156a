package install

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

// TestKept checks that pools outlive what removes the controller, Helm's way and ours, and come back with it.
func TestKept(t *testing.T) {
	c := newCluster(t)
	way := ways()[0]
	way.install(c)
	admin, err := c.Admin()
	if err != nil {
		t.Fatal(err)
	}
	pool := &v1.BCSNetPool{
		ObjectMeta: metav1.ObjectMeta{Name: "kept", Finalizers: []string{v1.PoolFinalizer}}, // as by a controller
		Spec:       v1.BCSNetPoolSpec{Net: "10.0.0.0", Mask: 24, Gateway: "10.0.0.1", AvailableIPs: []string{"10.0.0.20"}},
	}
	controlplane.Until(t, "the API server serves pools", func() bool { return admin.Create(t.Context(), pool) == nil })
	there := func(after string) {
		t.Helper()
		if out := c.bcsnetctl("pool", "list", "-o", "name"); !strings.Contains(out, "kept") {
			t.Errorf("after %s there is %q", after, out)
		}
	}
	out := c.helm("uninstall", "bcsnet", "--namespace", controlplane.SystemNamespace)
	if !strings.Contains(out, "kept due to the resource policy") {
		t.Errorf("helm uninstall says %s", out)
	}
	there("helm uninstall")
	way.install(c)
	there("helm install")

	code, _, said := c.command("uninstall", "--crds", "--yes")
	if code == 0 || !strings.Contains(said, "1 pool") {
		t.Errorf("uninstall --crds with a pool: exit code %d: %s", code, said)
	}
	there("uninstall --crds")

	// Who is asked knows what Helm loses, and nothing changes before the answer.
	before := c.releases()
	code, _, said = c.command("install", "--image", image)
	if code == 0 || before == 0 || c.releases() != before || !strings.Contains(said, "Helm has this as the release bcsnet") {
		t.Errorf("install without an answer: exit code %d, %d records, then %d: %s", code, before, c.releases(), said)
	}
	code, _, said = c.command("install", "--image", image, "--dry-run=server", "--yes")
	if code != 0 || c.releases() != before || !strings.Contains(said, "Helm release bcsnet is forgotten") {
		t.Errorf("a dry run: exit code %d, %d records, then %d: %s", code, before, c.releases(), said)
	}

	// Nobody else takes the finalizers off where no controller runs.
	held := &v1.BCSNetIP{
		ObjectMeta: metav1.ObjectMeta{Name: "10.0.0.20", Finalizers: []string{v1.HeldFinalizer}},
		Spec:       v1.BCSNetIPSpec{Pool: "kept", Mask: 24, Gateway: "10.0.0.1"},
		Status:     v1.BCSNetIPStatus{Status: v1.IPActive, Host: "10.0.0.11", Owner: "vm-1"},
	}
	if err := admin.Create(t.Context(), held); err != nil {
		t.Fatal(err)
	}
	code, _, said = c.command("uninstall", "--crds", "--delete-leases", "--yes")
	if code != 0 || !strings.Contains(said, "bcsnetips.networkextension.bkbcs.tencent.com deleted") {
		t.Errorf("uninstall --crds --delete-leases: exit code %d: %s", code, said)
	}
}
