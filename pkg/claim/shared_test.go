package claim

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/bcsnet/bcsnet/api/v1"
)

func TestServesElsewhere(t *testing.T) {
	for name, tc := range map[string]struct {
		namespaces []string
		deleting   bool
		want       bool
	}{
		"its own alone": {}, "others": {namespaces: []string{"blue"}}, "it, too": {namespaces: []string{"blue", "shop"}, want: true},
		"all": {namespaces: []string{AllNamespaces}, want: true}, "being deleted": {namespaces: []string{AllNamespaces}, deleting: true},
	} {
		t.Run(name, func(t *testing.T) {
			o := &v1.BCSNetIPClaim{Spec: v1.BCSNetIPClaimSpec{Namespaces: tc.namespaces}}
			if tc.deleting {
				o.DeletionTimestamp = &metav1.Time{Time: time.Now()}
			}
			if got := ServesElsewhere(o, "shop"); got != tc.want {
				t.Errorf("%t", got)
			}
		})
	}
}
