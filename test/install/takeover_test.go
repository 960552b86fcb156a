package install

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bcsnet/bcsnet/test/controlplane"
)

// TestTakeover has our command upgrade what Helm installed with values: who may not do all of it changes nothing, and
// what values have set of the network of pods and of certificates stays.
func TestTakeover(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.helm("install", "bcsnet", c.chart(), "--namespace", controlplane.SystemNamespace, "--create-namespace",
		"--set", "node.enabled=true", "--set", "node.conflistName=99-x.conflist",
		"--set", "tls.secretName=web", "--set", "tls.caConfigMap=trusted")

	// Rights that Helm's release takes are asked before the first change, with all others.
	before, records := c.objects(), c.releases()
	for user, test := range map[string]struct {
		verbs, want []string
	}{
		"writer": {[]string{"get", "patch", "create"}, []string{"you may not list, delete secrets (Forbidden)\n"}},
		"reader": {[]string{"get"}, []string{"patch deployments.apps; ", "patch configmaps; ", "list, delete secrets; "}},
	} {
		role := &rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: user},
			Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: test.verbs}},
		}
		if _, err := c.clients().RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		c.kubectl("create", "clusterrolebinding", user, "--clusterrole="+user, "--user="+user)
		code, _, said := c.command("--as", user, "upgrade", "--yes", "--wait=false")
		if code != 1 || !strings.Contains(said, "nothing was changed: ") {
			t.Errorf("%s: exit code %d: %s", user, code, said)
		}
		for _, want := range test.want {
			if !strings.Contains(said, want) {
				t.Errorf("%s is not told %q: %s", user, want, said)
			}
		}
		if diff := cmp.Diff(before, c.objects()); diff != "" || c.releases() != records {
			t.Errorf("%s changes something (-before +after), of %d records to %d:\n%s", user, records, c.releases(), diff)
		}
	}

	c.bcsnetctl("upgrade", "--yes", "--wait=false")
	after := c.objects()
	for _, object := range []string{"deployments bcsnet-system/bcsnet-controller", "daemonsets bcsnet-system/bcsnet-node", "configmaps bcsnet-system/bcsnet-conflist"} {
		if diff := cmp.Diff(before[object], after[object]); diff != "" {
			t.Errorf("%s (-by helm +taken over):\n%s", object, diff)
		}
	}
	if n := c.releases(); n > 0 {
		t.Errorf("Helm has %d records", n)
	}
}
