package claim

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

func TestIsFor(t *testing.T) {
	web := workload.Workload{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web", UID: "u"}
	for name, tc := range map[string]struct {
		change func(*v1.BCSNetIPClaim)
		want   bool
	}{
		"its own":               {func(*v1.BCSNetIPClaim) {}, true},
		"of another version":    {func(o *v1.BCSNetIPClaim) { o.Spec.Owner.APIVersion = "apps/v1beta1" }, true},
		"of another name":       {func(o *v1.BCSNetIPClaim) { o.Spec.Owner.Name = "web2" }, false},
		"of another kind":       {func(o *v1.BCSNetIPClaim) { o.Spec.Owner.Kind = "StatefulSet" }, false},
		"of another group":      {func(o *v1.BCSNetIPClaim) { o.Spec.Owner.APIVersion = "example.org/v1" }, false},
		"of no version":         {func(o *v1.BCSNetIPClaim) { o.Spec.Owner.APIVersion = "a/b/c" }, false},
		"of another namespace":  {func(o *v1.BCSNetIPClaim) { o.Namespace = "bank" }, false},
		"of nobody":             {func(o *v1.BCSNetIPClaim) { o.Spec.Owner = nil }, false},
		"made from annotations": {func(o *v1.BCSNetIPClaim) { o.Labels = map[string]string{Managed: "true"} }, false},
		"being deleted":         {func(o *v1.BCSNetIPClaim) { o.DeletionTimestamp = &metav1.Time{Time: time.Now()} }, false},
	} {
		o := &v1.BCSNetIPClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "prepared"}}
		o.Spec.Owner = &v1.ClaimOwner{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}
		if tc.change(o); IsFor(o, web) != tc.want {
			t.Errorf("%s: %t", name, !tc.want)
		}
	}
}
