package upgrade

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

// TestPoliciesBefore has controllers of the release before this one work under what this release installs: its
// definitions, roles and admission policies. So it is in the middle of an upgrade, and where one was taken back.
func TestPoliciesBefore(t *testing.T) {
	controlplane.TakesLong(t)
	t.Parallel()
	s := newSite(t, controlplane.ForTest(t))
	s.definitions(s.now)
	s.rights(s.now)
	s.refused()
	s.node()
	h := s.hold() // allocates: for pods of both families, for owners, and for pods that keep theirs
	h.check("under the policies")

	// Given back, by a DEL and by the garbage collection.
	given := h.requests["container-held-0"]
	h.ask(http.MethodDelete, given)
	if st := s.status(h.addrs[given.ContainerID]); st.Status != v1.IPAvailable {
		t.Errorf("after a DEL %s is %s", h.addrs[given.ContainerID], st.Status)
	}
	gone := h.requests["container-held-1"]
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: gone.PodNamespace, Name: gone.PodName}}
	if err := s.admin.Delete(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	controlplane.EventuallyWithin(t, patience, func() error {
		if st := s.status(h.addrs[gone.ContainerID]); st.Status == v1.IPActive {
			return fmt.Errorf("%s is not collected: %+v", h.addrs[gone.ContainerID], st)
		}
		return nil
	})

	// A pool goes, with its finalizer and its addresses.
	for _, key := range []string{given.ContainerID, gone.ContainerID} {
		delete(h.requests, key)
		delete(h.addrs, key)
	}
	h.check("after both were given back")
	var p v1.BCSNetPool
	p.Name = "machines"
	for i := range 3 {
		owner := fmt.Sprintf("machine-%d", i)
		h.ask(http.MethodDelete, h.requests[owner])
		delete(h.requests, owner)
		delete(h.addrs, owner)
	}
	if err := s.admin.Delete(t.Context(), &p); err != nil {
		t.Fatal(err)
	}
	controlplane.Eventually(t, func() error {
		err := s.admin.Get(t.Context(), client.ObjectKeyFromObject(&p), &p)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("the pool is still there: %+v: %w", p.Status, err)
	})
}

// node makes the host a node that is ready: nothing is collected where containers may run on.
func (s *site) node() {
	s.Helper()
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	s.create(n)
	n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: host}}
	n.Status.Conditions = []corev1.NodeCondition{{
		Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now(),
	}}
	if err := s.admin.Status().Update(s.Context(), n); err != nil {
		s.Fatal(err)
	}
}

// refused waits until the policies are in force: who may write addresses by RBAC and has no manage is refused by them.
func (s *site) refused() {
	s.Helper()
	const writer = "writer"
	s.create(
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: writer}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{v1.GroupVersion.Group}, Resources: []string{v1.IPResource}, Verbs: []string{"create", "update"}},
		}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: writer},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: writer},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: writer}},
		},
	)
	cfg := rest.CopyConfig(s.cluster.Config)
	cfg.Impersonate = rest.ImpersonationConfig{UserName: writer, Groups: []string{"system:authenticated"}}
	c, err := client.New(cfg, client.Options{Scheme: s.admin.Scheme()})
	if err != nil {
		s.Fatal(err)
	}
	controlplane.Eventually(s, func() error {
		err := c.Create(s.Context(), &v1.BCSNetIP{
			ObjectMeta: metav1.ObjectMeta{Name: "10.255.255.1"},
			Spec:       v1.BCSNetIPSpec{Pool: "none", Mask: 24, Gateway: "10.255.255.254"},
		}, client.DryRunAll)
		if apierrors.IsForbidden(err) && strings.Contains(err.Error(), "ValidatingAdmissionPolicy 'bcsnet-addresses'") {
			return nil
		}
		return fmt.Errorf("no policy refuses an address that is written by hand: %w", err)
	})
}
