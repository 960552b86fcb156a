package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

// policies compares allocations while the API server holds the policies of the manifests with those while it has none,
// in turns that are long enough for each to have its share of what API server and etcd do now and then.
func (b *bench) policies(ctx context.Context) error {
	p, err := b.pool(ctx, "bench-policies", "10.16.0.0/20", v1.MaterializeAlways)
	if err != nil {
		return err
	}
	if err := b.waitNormal(ctx, p); err != nil {
		return err
	}
	g, err := b.newGuard(ctx)
	if err != nil {
		return err
	}
	for _, callers := range []int{1, 16, maxCallers} {
		say("allocate: %d callers with policies and without", callers)
		with, without, err := b.switched(ctx, callers, "", g.set)
		if err != nil {
			return err
		}
		b.report.policies = append(b.report.policies, switched(callers, with, without))
	}
	return nil
}

// switched measures allocations of a network, or of any if it is empty, in turns while something is on and off. set
// switches it.
func (b *bench) switched(
	ctx context.Context, callers int, network string, set func(ctx context.Context, on bool) error,
) (with, without []result, err error) {
	if err := atRest(ctx); err != nil {
		return nil, nil, err
	}
	both, results := []bool{true, false}, map[bool][]result{}
	for turn := range largeTurns*b.rounds + 1 {
		slices.Reverse(both)
		for _, on := range both {
			if err := set(ctx, on); err != nil {
				return nil, nil, err
			}
			s := service{b: b, kind: fmt.Sprintf("switched/%s/%d/%d/%t", network, callers, turn, on), network: network}
			r, err := load(ctx, callers, b.slice, cycle{timed: s.add, after: s.del})
			if err != nil {
				return nil, nil, err
			}
			if turn > 0 { // the first one warms up
				results[on] = append(results[on], r)
			}
		}
	}
	return results[true], results[false], nil
}

// guard switches the policies by their bindings.
type guard struct {
	admin client.Client
	// writer may make addresses as far as RBAC is asked, and not as far as the policies are.
	writer   client.Client
	bindings []admissionregistrationv1.ValidatingAdmissionPolicyBinding
}

func (b *bench) newGuard(ctx context.Context) (*guard, error) {
	const user = "bench-writer"
	for _, o := range []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{v1.GroupVersion.Group}, Resources: []string{v1.IPResource}, Verbs: []string{"create"}},
		}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: user},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
		},
	} {
		if err := b.admin.Create(ctx, o); err != nil {
			return nil, err
		}
	}
	cfg := rest.CopyConfig(b.cp.Config)
	cfg.Impersonate.UserName = user
	scheme, err := controlplane.Scheme()
	if err != nil {
		return nil, err
	}
	g := &guard{admin: b.admin}
	if g.writer, err = client.New(cfg, client.Options{Scheme: scheme}); err != nil {
		return nil, err
	}
	var list admissionregistrationv1.ValidatingAdmissionPolicyBindingList
	if err := b.admin.List(ctx, &list); err != nil {
		return nil, err
	}
	for _, o := range list.Items {
		if strings.HasPrefix(o.Name, "bcsnet-") {
			o.ObjectMeta = metav1.ObjectMeta{Name: o.Name}
			g.bindings = append(g.bindings, o)
		}
	}
	if len(g.bindings) == 0 {
		return nil, errors.New("the manifests bind no policies")
	}
	return g, nil
}

// set binds the policies or unbinds them, and returns when the API server goes by that.
func (g *guard) set(ctx context.Context, on bool) error {
	for _, o := range g.bindings {
		var err error
		if on {
			err = client.IgnoreAlreadyExists(g.admin.Create(ctx, o.DeepCopy()))
		} else {
			err = client.IgnoreNotFound(g.admin.Delete(ctx, o.DeepCopy()))
		}
		if err != nil {
			return err
		}
	}
	o := &v1.BCSNetIP{
		ObjectMeta: metav1.ObjectMeta{Name: "10.255.255.1"},
		Spec:       v1.BCSNetIPSpec{Pool: "none", Mask: 24, Gateway: "10.255.255.2"},
	}
	return controlplane.WaitFor(ctx, time.Minute, func() error {
		err := g.writer.Create(ctx, o.DeepCopy(), client.DryRunAll)
		denied := apierrors.IsForbidden(err) && strings.Contains(err.Error(), "ValidatingAdmissionPolicy")
		if denied == on && (on || err == nil) {
			return nil
		}
		return errors.Join(fmt.Errorf("policies are to be bound: %t; who has no manage makes an address or not", on),
			err)
	})
}
