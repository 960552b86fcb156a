package pool

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/controller/conditions"
	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// quotaConditions returns the conditions of a pool about the quotas of its namespaces; none if it has no quotas and
// never had any. Their messages do not contain the number of addresses, because it changes with every pod.
func quotaConditions(p ipam.Pool, uses []ipam.NamespaceUse, before []metav1.Condition) []metav1.Condition {
	if !p.HasQuotas() && meta.FindStatusCondition(before, v1.ConditionOverLimit) == nil {
		return nil
	}
	over, near := namesOf(uses, ipam.NamespaceUse.Over), namesOf(uses, ipam.NamespaceUse.NearlyReached)
	tooMany := conditions.New(v1.ConditionOverLimit, false, v1.ReasonWithinLimit,
		"no namespace has more addresses than it may")
	if len(over) > 0 {
		tooMany = conditions.New(v1.ConditionOverLimit, true, v1.ReasonTooMany,
			"namespaces with more addresses than they may have: %s; none is taken from a pod that runs; see: "+
				"bcsnetctl pool describe %s",
			fewOf(over), p.Name)
	}
	reached := conditions.New(v1.ConditionQuotaNearlyReached, false, v1.ReasonQuotasLeft,
		"no namespace has four of five addresses of its quota")
	if len(near) > 0 {
		reached = conditions.New(v1.ConditionQuotaNearlyReached, true, v1.ReasonQuotaNearlyReached,
			"namespaces with four of five addresses of their quota, or more: %s; see: bcsnetctl pool describe %s; "+
				"raise one: bcsnetctl pool set %s --quota NAMESPACE=N",
			fewOf(near), p.Name, p.Name)
	}
	return []metav1.Condition{tooMany, reached}
}

// maxNamespaces bounds the namespaces that a message names.
const maxNamespaces = 10

// namesOf returns the namespaces for which a condition holds, with their quotas: "shop (of 50)".
func namesOf(uses []ipam.NamespaceUse, so func(ipam.NamespaceUse) bool) (names []string) {
	for _, u := range uses {
		if so(u) {
			names = append(names, fmt.Sprintf("%s (of %d)", u.Namespace, u.Quota))
		}
	}
	return names
}

func fewOf(names []string) string {
	text := strings.Join(names[:min(len(names), maxNamespaces)], ", ")
	if more := len(names) - maxNamespaces; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// emitQuotaEvents creates an event on a pool for every namespace that has reached four fifths of its quota. The next
// event follows only after it was below seven tenths. If the status had the condition before this leader's term, there
// is no event.
func (r *Reconciler) emitQuotaEvents(pool *v1.BCSNetPool, uses []ipam.NamespaceUse) {
	r.mu.Lock()
	told, begun := r.nearQuota[pool.Name]
	if !begun {
		told = map[string]bool{}
		r.nearQuota[pool.Name] = told
	}
	known := !begun && meta.IsStatusConditionTrue(pool.Status.Conditions, v1.ConditionQuotaNearlyReached)
	var fresh []ipam.NamespaceUse
	for _, u := range uses {
		switch {
		case u.NearlyReached() && !told[u.Namespace]:
			if told[u.Namespace] = true; !known {
				fresh = append(fresh, u)
			}
		case u.Has*10 < u.Quota*7:
			delete(told, u.Namespace)
		}
	}
	for ns := range told {
		if !slices.ContainsFunc(uses, func(u ipam.NamespaceUse) bool { return u.Namespace == ns }) {
			delete(told, ns)
		}
	}
	r.mu.Unlock()
	for _, u := range fresh {
		// Events about the same objects would be counted as one, whatever their messages.
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: u.Namespace}}
		r.Events.Eventf(pool, namespace, corev1.EventTypeWarning, v1.ReasonQuotaNearlyReached,
			v1.ConditionQuotaNearlyReached,
			"namespace %s has %d of the %d addresses of pool %s that it may have; see: bcsnetctl usage %s --by "+
				"namespace; raise its quota: bcsnetctl pool set %s --quota %s=N",
			u.Namespace, u.Has, u.Quota, pool.Name, pool.Name, pool.Name, u.Namespace)
	}
}

// forgetQuotas forgets the quota events of a deleted pool.
func (r *Reconciler) forgetQuotas(pool string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.nearQuota, pool)
}
