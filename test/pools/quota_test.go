package pools_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

// TestQuota: a namespace that comes near its quota of a pool is told of once, one that has reached it is refused and
// says why, and one that has more, as the quota was lowered, keeps what it has.
func TestQuota(t *testing.T) {
	p := newPool(t, "quota", func(s *v1.BCSNetPoolSpec) { s.MaxPerNamespace = 5 }, "10.147.0.20-10.147.0.29")
	for i := range 6 {
		newPod(t, fmt.Sprint("quota-", i))
	}
	wantCondition(t, p, v1.ConditionQuotaNearlyReached, metav1.ConditionFalse, v1.ReasonQuotasLeft)
	have := map[int]string{}
	for i := range 5 {
		a := ask(t, http.MethodPost, fmt.Sprint("quota-", i), "")
		if a.Code != 0 {
			t.Fatalf("%+v", a)
		}
		have[i] = a.Address.IPAddr
	}
	wantCondition(t, p, v1.ConditionQuotaNearlyReached, metav1.ConditionTrue, v1.ReasonQuotaNearlyReached,
		"default (of 5)")
	wantCondition(t, p, v1.ConditionOverLimit, metav1.ConditionFalse, v1.ReasonWithinLimit)
	const why = "namespace default has 5 of the 5 that it may have"
	if a := ask(t, http.MethodPost, "quota-5", ""); a.Reason != "QuotaExceeded" || !strings.Contains(a.Message, why) {
		t.Errorf("one more: %+v", a)
	}

	edit(t, p, func(s *v1.BCSNetPoolSpec) { s.Quotas = []v1.NamespaceQuota{{Namespace: "default", Max: 2}} })
	wantCondition(t, p, v1.ConditionOverLimit, metav1.ConditionTrue, v1.ReasonTooMany, "default (of 2)")
	for i, ip := range have {
		if a := ask(t, http.MethodPost, fmt.Sprint("quota-", i), ""); a.Code != 0 || a.Address.IPAddr != ip {
			t.Errorf("what it holds: %+v, it had %s", a, ip)
		}
	}
	for i := range 4 {
		if a := ask(t, http.MethodDelete, fmt.Sprint("quota-", i), ""); a.Code != 0 {
			t.Errorf("%+v", a)
		}
	}
	wantCondition(t, p, v1.ConditionOverLimit, metav1.ConditionFalse, v1.ReasonWithinLimit)
	wantCondition(t, p, v1.ConditionQuotaNearlyReached, metav1.ConditionFalse, v1.ReasonQuotasLeft)
	if a := ask(t, http.MethodPost, "quota-5", ""); a.Code != 0 {
		t.Errorf("there is room again: %+v", a)
	}
	wantCondition(t, p, v1.ConditionQuotaNearlyReached, metav1.ConditionTrue, v1.ReasonQuotaNearlyReached,
		"default (of 2)")
	controlplane.EventuallyWithin(t, patience, func() error {
		all := eventsOf(t, p)
		told := slices.DeleteFunc(all, func(e string) bool { return e != "Warning QuotaNearlyReached" })
		if len(told) == 0 || len(told) > 2 {
			return fmt.Errorf("told %d times", len(told))
		}
		return nil
	})
}
