package rights

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagemigrationv1beta1 "k8s.io/api/storagemigration/v1beta1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

// isGone waits until an object is gone.
func isGone(t *testing.T, o client.Object) {
	t.Helper()
	controlplane.Eventually(t, func() error {
		err := admin.Get(t.Context(), client.ObjectKeyFromObject(o), o)
		if err == nil {
			return fmt.Errorf("%s is there, with the finalizers %v", o.GetName(), o.GetFinalizers())
		}
		return client.IgnoreNotFound(err)
	})
}

// The API server's own migration of storage writes every object as it is, and so does one that runs in the cluster.
func TestStorageMigration(t *testing.T) {
	ready(t)
	t.Parallel()
	objects := []client.Object{held(t), pool(t, "migrated"), claim(t, "migrated")}
	// The migration begins when the garbage collector has seen a later change of the kind.
	later := map[string]client.Object{
		v1.IPResource: held(t), v1.PoolResource: pool(t, "later"), v1.ClaimResource: claim(t, "later"),
	}
	for resource, o := range later {
		m := &storagemigrationv1beta1.StorageVersionMigration{
			ObjectMeta: metav1.ObjectMeta{Name: resource},
			Spec: storagemigrationv1beta1.StorageVersionMigrationSpec{
				Resource: metav1.GroupResource{Group: v1.GroupVersion.Group, Resource: resource},
			},
		}
		created(t, m)
		n := 0
		controlplane.EventuallyWithin(t, 3*time.Minute, func() error {
			n++
			label := fmt.Sprintf(`{"metadata":{"labels":{"turn":"%d"}}}`, n/50) // about once a second
			if err := errors.Join(admin.Patch(t.Context(), o, client.RawPatch(types.MergePatchType, []byte(label))),
				admin.Get(t.Context(), client.ObjectKeyFromObject(m), m)); err != nil {
				return err
			}
			if c := meta.FindStatusCondition(m.Status.Conditions,
				string(storagemigrationv1beta1.MigrationFailed)); c != nil &&
				c.Status == metav1.ConditionTrue {
				t.Fatalf("the migration of %s failed: %s", resource, c.Message)
			}
			if !meta.IsStatusConditionTrue(m.Status.Conditions, string(storagemigrationv1beta1.MigrationSucceeded)) {
				return fmt.Errorf("the migration of %s has the conditions %v", resource, m.Status.Conditions)
			}
			return nil
		})
	}
	migrator := as(t, "writer")
	for _, o := range objects {
		for name, write := range map[string]func() error{
			"update": func() error { return migrator.Update(t.Context(), o) },
			"patch": func() error {
				return migrator.Patch(t.Context(), o, client.RawPatch(types.MergePatchType, []byte(`{}`)))
			},
		} {
			if err := admin.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
				t.Fatal(err)
			}
			if err := write(); err != nil {
				t.Errorf("an %s of %T that changes nothing: %v", name, o, err)
			}
		}
	}
}

// The garbage collector takes off what a deletion in the foreground, and one that orphans, have it take off, and names
// of owners that are gone; it deletes claims with their owner.
func TestGarbageCollection(t *testing.T) {
	ready(t)
	t.Parallel()
	for name, policy := range map[string]metav1.DeletionPropagation{
		"foreground": metav1.DeletePropagationForeground, "orphan": metav1.DeletePropagationOrphan,
	} {
		for _, o := range []client.Object{address(freshName()), pool(t, name), claim(t, name)} {
			if o.GetUID() == "" {
				created(t, o)
			}
			if err := admin.Patch(t.Context(), o, finalizersOf()); err != nil {
				t.Fatal(err)
			}
			if err := admin.Delete(t.Context(), o, client.PropagationPolicy(policy)); err != nil {
				t.Fatal(err)
			}
			isGone(t, o)
		}
	}
	here, gone := owner(t, "here"), owner(t, "gone")
	owned := held(t)
	owned.OwnerReferences = []metav1.OwnerReference{ownedBy(here), ownedBy(gone)}
	if err := admin.Update(t.Context(), owned); err != nil {
		t.Fatal(err)
	}
	with := claim(t, "with-its-owner")
	with.SetOwnerReferences([]metav1.OwnerReference{ownedBy(gone)})
	with.SetFinalizers(nil)
	if err := admin.Update(t.Context(), with); err != nil {
		t.Fatal(err)
	}
	if err := admin.Delete(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	isGone(t, with)
	controlplane.Eventually(t, func() error {
		if err := admin.Get(t.Context(), client.ObjectKeyFromObject(owned), owned); err != nil {
			t.Fatal(err)
		}
		if n := len(owned.OwnerReferences); n != 1 {
			return fmt.Errorf("the address has %d owners", n)
		}
		return nil
	})
}

func owner(t *testing.T, name string) client.Object {
	t.Helper()
	return created(t, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "owner-" + name}})
}

func ownedBy(o client.Object) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole", Name: o.GetName(),
		UID: o.GetUID()}
}

// A namespace goes with its claims. Where the controller is gone an administrator takes the finalizers off.
func TestNamespaceIsDeleted(t *testing.T) {
	ready(t)
	t.Parallel()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "goes"}}
	if err := admin.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	kept := &v1.BCSNetIPClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "goes", Name: "kept", Finalizers: []string{v1.ClaimFinalizer}},
		Spec:       v1.BCSNetIPClaimSpec{ReleasePolicy: v1.ReleaseNever},
	}
	free := &v1.BCSNetIPClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "goes", Name: "free"}, Spec: kept.Spec}
	for _, o := range []client.Object{kept, free} {
		if err := admin.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	if err := admin.Delete(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	isGone(t, free)
	controlplane.Eventually(t, func() error {
		if err := admin.Get(t.Context(), client.ObjectKeyFromObject(kept), kept); err != nil {
			t.Fatal(err)
		}
		if kept.DeletionTimestamp == nil {
			return fmt.Errorf("the claim is not being deleted")
		}
		return nil
	})
	if err := admin.Patch(context.Background(), kept, finalizersOf()); err != nil {
		t.Fatal(err)
	}
	isGone(t, namespace)
}
