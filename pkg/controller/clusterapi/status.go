package clusterapi

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bcsnet/bcsnet/pkg/controller/conditions"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/recovery"
)

// reasonOf returns the contract's word for a refusal.
func reasonOf(r ipam.Reason) string {
	switch r {
	case ipam.ReasonPoolExhausted, ipam.ReasonNoFreeBlock:
		return reasonPoolFull
	case ipam.ReasonPoolCordoned, ipam.ReasonPoolRebuilding, ipam.ReasonNotFound:
		return reasonPoolWaits
	default:
		return reasonFailed
	}
}

// refuse shows in a claim's status why it has no address.
func (r *Reconciler) refuse(ctx context.Context, c *claim, why *ipam.Refusal) (time.Duration, error) {
	return r.publish(ctx, c, false, reasonOf(why.Reason), conditions.Clip(why.Error(), maxConditionNote))
}

// publish writes the status of a claim if it is not up to date. The first message of a refusal stays: later ones would
// only vary it.
func (r *Reconciler) publish(
	ctx context.Context, c *claim, ready bool, reason, message string,
) (again time.Duration, err error) {
	served, err := r.claims.Version(ctx)
	if err != nil {
		return 0, err
	}
	status, condition := "False", map[string]any{}
	if ready {
		status = "True"
	}
	i := slices.IndexFunc(c.Status.Conditions, func(o map[string]any) bool { return o["type"] == conditionReady })
	if i >= 0 {
		condition = c.Status.Conditions[i]
	}
	told := condition["status"] == status && condition["reason"] == reason
	if told && (!ready || c.Status.AddressRef.Name == c.Name) {
		return 0, nil
	}
	next := map[string]any{"type": conditionReady, "status": status, "reason": reason, "message": message}
	next["lastTransitionTime"] = condition["lastTransitionTime"]
	if condition["status"] != status {
		next["lastTransitionTime"] = metav1.NewTime(r.holders.Leases.Now()).Rfc3339Copy()
	}
	switch {
	case served.Version != oldVersion:
		next["observedGeneration"] = c.Generation
	case !ready:
		next["severity"] = severityWarning
	}
	all := slices.Clone(c.Status.Conditions)
	if i < 0 {
		all = append(all, next)
	} else {
		all[i] = next
	}
	change := map[string]any{"conditions": all}
	if ready {
		change["addressRef"] = map[string]any{"name": c.Name}
	}
	text, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": c.ResourceVersion}, "status": change,
	})
	if err != nil {
		return 0, err
	}
	at, err := r.claims.At(ctx, c.Namespace)
	if err == nil {
		_, err = at.Patch(ctx, c.Name, types.MergePatchType, text, metav1.PatchOptions{}, "status")
	}
	return r.published.Wrote(c.Namespace+"/"+c.Name, err), nil
}

// unseenTime bounds the wait for the list of IPAddresses, as that of pools that lost leases: pods need addresses also
// while the list fails, for example because of the kind's conversion webhook.
const unseenTime = 5 * time.Minute

// Unseen returns an error while it is not known which IPAddresses there are. Without their kind, or a role for it,
// there are none.
func (r *Reconciler) Unseen() error {
	if r == nil || r.addresses.Seen() || r.addresses.Denied() {
		return nil
	}
	now := time.Now()
	if r.unseen.CompareAndSwap(0, now.UnixNano()); now.Sub(time.Unix(0, r.unseen.Load())) > unseenTime {
		return nil
	}
	return errors.New("the list of IPAddresses has not come yet")
}

// Objects yields the addresses that IPAddresses of our pools say they have.
func (r *Reconciler) Objects() iter.Seq[recovery.Object] {
	return func(yield func(recovery.Object) bool) {
		if r == nil {
			return
		}
		for _, u := range r.addresses.All() {
			if o, ok := recovery.ObjectOf(u); ok && !yield(o) {
				return
			}
		}
	}
}
