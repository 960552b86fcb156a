package resource

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
)

func TestState(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s := &app.App{Now: func() time.Time { return now }}
	pool := func(change func(*v1.BCSNetPool)) *v1.BCSNetPool {
		p := &v1.BCSNetPool{ObjectMeta: metav1.ObjectMeta{
			Generation: 2, CreationTimestamp: metav1.NewTime(now.Add(-time.Hour)),
		}}
		p.Status.ObservedGeneration, p.Status.Status = 2, v1.PoolNormal
		change(p)
		return p
	}
	set := func(kind string, status metav1.ConditionStatus, reason string) func(*v1.BCSNetPool) {
		return func(p *v1.BCSNetPool) {
			meta.SetStatusCondition(&p.Status.Conditions, metav1.Condition{Type: kind, Status: status, Reason: reason})
		}
	}
	for _, test := range []struct {
		change    func(*v1.BCSNetPool)
		want      string
		attention bool
	}{
		{func(*v1.BCSNetPool) {}, "Ready", false},
		{func(p *v1.BCSNetPool) { p.DeletionTimestamp = &metav1.Time{Time: now} }, "Terminating", true},
		{func(p *v1.BCSNetPool) { p.Status.ObservedGeneration = 0 }, "Unseen", true},
		{func(p *v1.BCSNetPool) { p.Status.ObservedGeneration, p.CreationTimestamp = 0, metav1.NewTime(now) }, "Unseen", false},
		{func(p *v1.BCSNetPool) { p.Status.ObservedGeneration = 1 }, "Updating", false},
		{func(p *v1.BCSNetPool) { p.Status.Status = v1.PoolInitializing }, "Initializing", false},
		{set(v1.ConditionReady, metav1.ConditionFalse, v1.ReasonInvalidSpec), "InvalidSpec", true},
		{set(v1.ConditionReady, metav1.ConditionFalse, v1.ReasonCordoned), "Cordoned", false},
		{set(v1.ConditionExhausted, metav1.ConditionTrue, v1.ReasonNoAddressesFree), "Exhausted", true},
		{set(v1.ConditionOverlap, metav1.ConditionTrue, v1.ReasonSharedLost), "Overlap", true},
		{set(v1.ConditionDraining, metav1.ConditionTrue, v1.ReasonAddressesRetire), "Draining", false},
	} {
		if word, attention := PoolState(s, pool(test.change)); word != test.want || attention != test.attention {
			t.Errorf("got %s (attention %v), want %s (%v)", word, attention, test.want, test.attention)
		}
	}
}
