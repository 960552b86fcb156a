package main

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/bcsnet/bcsnet/api/v1"
)

// contestant is one of two kinds of allocation that are compared with each other.
type contestant struct {
	service
	slices []result
}

// policies are what the pods of the two StatefulSets say.
var policies = map[string]map[string]string{
	"bench-plain":  nil,
	"bench-sticky": {v1.GroupVersion.Group + "/release-policy": "immutable"},
}

// sticky compares allocations of pods that get back the address that is kept for them with those of pods that take any.
// Both are numbered pods of a StatefulSet, which differ in one annotation.
func (b *bench) sticky(ctx context.Context) error {
	p, err := b.pool(ctx, "bench-kept", "10.112.0.0/22", v1.MaterializeAlways)
	if err != nil {
		return err
	}
	if err := b.waitNormal(ctx, p); err != nil {
		return err
	}
	for name, annotations := range policies {
		if err := b.makeSet(ctx, name, annotations); err != nil {
			return err
		}
	}
	for _, callers := range []int{1, 16, maxCallers} {
		say("sticky beside plain: %d callers", callers)
		plain, kept, err := b.duel(ctx, callers)
		if err != nil {
			return err
		}
		b.report.sticky(callers, plain.slices, kept.slices)
	}
	for _, of := range []string{"plain", "sticky"} {
		c, err := b.costsOf(ctx, b.numbered("bench-"+of, "costs"))
		if err != nil {
			return err
		}
		b.report.stickyCosts(of, c)
	}
	return b.drop(ctx, p)
}

// numbered calls the allocator for the pods of a StatefulSet.
func (b *bench) numbered(set, kind string) service {
	return service{b: b, kind: set + "/" + kind, pod: func(caller int) string {
		return fmt.Sprintf("%s-%d", set,
			caller)
	}}
}

// duel makes both take short turns, in an order that changes every time, so that whatever else the machine does meets
// both alike. What is left of one turn, such as the status of a claim, meets either as often.
func (b *bench) duel(ctx context.Context, callers int) (plain, kept contestant, err error) {
	plain.service = b.numbered("bench-plain", fmt.Sprint(callers))
	kept.service = b.numbered("bench-sticky", fmt.Sprint(callers))
	const turns = 6 // of each, in the time of one measurement
	for _, c := range []*contestant{&plain, &kept} {
		if _, err := load(ctx, callers, warmUp, cycle{nil, c.earlier(c.add), c.earlier(c.del)}); err != nil {
			return plain, kept, err
		}
	}
	if err := atRest(ctx); err != nil {
		return plain, kept, err
	}
	for turn := range turns * b.rounds {
		both := []*contestant{&plain, &kept}
		if turn%2 == 1 {
			slices.Reverse(both)
		}
		for _, c := range both {
			c.kind = fmt.Sprintf("%d/%d", callers, turn)
			r, err := load(ctx, callers, b.slice/turns, cycle{timed: c.add, after: c.del})
			if err != nil {
				return plain, kept, err
			}
			c.slices = append(c.slices, r)
		}
	}
	return plain, kept, nil
}

// earlier returns an operation for containers that are not measured.
func (contestant) earlier(op operation) operation {
	return func(ctx context.Context, caller, n int) error { return op(ctx, caller, -n-1) }
}

// makeSet makes a StatefulSet and its pods, which no controller manager does here.
func (b *bench) makeSet(ctx context.Context, name string, annotations map[string]string) error {
	meta := metav1.ObjectMeta{Labels: map[string]string{"app": name}, Annotations: annotations}
	containers := []corev1.Container{{Name: "c", Image: "c"}}
	set := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: appsv1.StatefulSetSpec{
			Replicas: new(int32(maxCallers)), Selector: &metav1.LabelSelector{MatchLabels: meta.Labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: meta, Spec: corev1.PodSpec{Containers: containers}},
		},
	}
	if err := b.admin.Create(ctx, set); err != nil {
		return err
	}
	for i := range maxCallers {
		p := &corev1.Pod{ObjectMeta: *meta.DeepCopy(), Spec: corev1.PodSpec{NodeName: nodeName(i),
			Containers: containers}}
		p.Namespace, p.Name = namespace, b.numbered(name, "").pod(i)
		p.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set,
			appsv1.SchemeGroupVersion.WithKind("StatefulSet"))}
		if err := b.admin.Create(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// sticky reports a duel: the medians of each, and of the ratios turn by turn.
func (r *report) sticky(callers int, plain, kept []result) {
	var ops [2]int
	for i := range plain {
		ops[0], ops[1] = ops[0]+plain[i].ops, ops[1]+kept[i].ops
	}
	p, k := median(plain), median(kept)
	row := fmt.Sprintf("| %d | %d / %d | %.0f | %.0f | %s | %s / %s |", callers, ops[0], ops[1], p.perSecond,
		k.perSecond, byTurn(plain, kept, rate), ms(p.p50), ms(k.p50))
	fmt.Println(row)
	r.duels = append(r.duels, row)
}

func (r *report) stickyCosts(of string, c costs) {
	for _, row := range c.rows(of + " ") {
		fmt.Println(row)
		r.duelCosts = append(r.duelCosts, row)
	}
}

func (r *report) stickyTables() string {
	return join(
		table("Sticky beside plain",
			"| callers | operations plain / sticky | plain /s | sticky /s | time of plain, median (quartiles) | p50 "+
				"ms plain / sticky |", r.duels),
		table("Requests to the API server per operation, sticky beside plain", "| operation | requests |", r.duelCosts))
}
