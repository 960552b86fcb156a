package controlplane_test

import (
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bcsnet/bcsnet/test/controlplane"
)

func TestInstallManifestsGivesTheControllerItsRights(t *testing.T) {
	for range 2 { // also over itself
		if err := shared.InstallManifests(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for account, want := range map[string]bool{controlplane.ControllerName: true, "somebody": false} {
		cfg, err := shared.ServiceAccountConfig(t.Context(), controlplane.SystemNamespace, account)
		if err != nil {
			t.Fatal(err)
		}
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Group: "networkextension.bkbcs.tencent.com", Resource: "bcsnetips", Verb: "update",
			},
		}}
		review, err = clientsFor(t, cfg).AuthorizationV1().SelfSubjectAccessReviews().
			Create(t.Context(), review, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if review.Status.Allowed != want {
			t.Errorf("%s may update addresses: %t, want %t", account, review.Status.Allowed, want)
		}
	}
	out, err := shared.Kubectl(t.Context(), "get", "deployments", "-A", "-o", "name").CombinedOutput()
	if err != nil || strings.Contains(string(out), "bcsnet") {
		t.Errorf("deployments: %q, %v; the controller runs as a process", out, err)
	}
}
