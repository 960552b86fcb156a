package rights

import (
	"context"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
)

// foreign is a finalizer of somebody else.
const foreign = "example.com/backup"

// pool makes a pool with the controller's finalizer and a foreign one.
func pool(t *testing.T, name string) client.Object {
	t.Helper()
	return created(t, &v1.BCSNetPool{
		ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: []string{v1.PoolFinalizer, foreign}},
		Spec:       v1.BCSNetPoolSpec{Net: "10.9.0.0", Mask: 24, Gateway: "10.9.0.1", AvailableIPs: []string{"10.9.0.20"}},
	})
}

// claim makes a claim with the controller's finalizer and a foreign one.
func claim(t *testing.T, name string) client.Object {
	t.Helper()
	return created(t, &v1.BCSNetIPClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Finalizers: []string{v1.ClaimFinalizer, foreign}},
		Spec:       v1.BCSNetIPClaimSpec{ReleasePolicy: v1.ReleaseNever},
	})
}

// created makes an object, and removes it after the test, whatever keeps it.
func created(t *testing.T, o client.Object) client.Object {
	t.Helper()
	if err := admin.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.Background()
		for _, err := range []error{admin.Delete(ctx, o), admin.Patch(ctx, o, finalizersOf())} {
			if client.IgnoreNotFound(err) != nil {
				t.Error(err)
			}
		}
	})
	return o
}

// finalizersOf returns the patch that leaves an object these finalizers.
func finalizersOf(names ...string) client.Patch {
	list := "null"
	if len(names) > 0 {
		list = `["` + strings.Join(names, `","`) + `"]`
	}
	return client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":`+list+`}}`))
}

// What keeps addresses in use is taken off pools and claims by the controller and by who has manage on them. Everything
// else that RBAC allows is as it was.
func TestFinalizersAreTakenOffByWhoManages(t *testing.T) {
	ready(t)
	manageHere := &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "manager"},
		Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{v1.GroupVersion.Group}, Resources: []string{v1.ClaimResource}, Verbs: []string{"patch", "update", "manage"},
		}},
	}
	created(t, manageHere)
	created(t, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "manager"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "manager"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "manager"}},
	})
	const no, rbac, yes = "no", "no by RBAC", "yes"
	for user, test := range map[string]struct {
		client      client.Client
		pool, claim string
	}{
		"administrator":        {admin, yes, yes},
		"backup":               {as(t, "backup"), yes, yes},
		"controller":           {as(t, serviceAccount(system, "bcsnet-controller")), yes, yes},
		"operator":             {as(t, "operator"), no, no},
		"writer":               {as(t, "writer"), no, no},
		"manager of claims":    {as(t, "manager"), rbac, yes},
		"viewer":               {as(t, "viewer"), rbac, rbac},
		"admin of namespaces":  {as(t, "tenant"), rbac, rbac},
		"garbage collector":    {as(t, serviceAccount("kube-system", "generic-garbage-collector")), no, no},
		"namespace controller": {as(t, serviceAccount("kube-system", "namespace-controller")), rbac, rbac},
	} {
		t.Run(user, func(t *testing.T) {
			t.Parallel()
			name := "f-" + strings.ReplaceAll(user, " ", "-")
			for may, create := range map[*string]func(*testing.T, string) client.Object{&test.pool: pool, &test.claim: claim} {
				o := create(t, name)
				want := func(what string, err error, ours bool) {
					t.Helper()
					ok := *may == yes || *may == no && !ours
					if ok && err != nil || !ok && !apierrors.IsForbidden(err) || refusedBy(err, finalizers) != (!ok && *may == no) {
						t.Errorf("%s of %T: %v, want %s", what, o, err, *may)
					}
				}
				try := func(what string, p client.Patch, ours bool) {
					t.Helper()
					want(what, test.client.Patch(t.Context(), o.DeepCopyObject().(client.Object), p), ours)
				}
				ours := o.GetFinalizers()[0]
				try("a label", client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`)), false)
				try("another finalizer", finalizersOf(ours, foreign, "example.com/second"), false)
				try("foreign ones off", finalizersOf(ours), false)
				try("another in its place", finalizersOf(foreign), true)
				if err := admin.Patch(t.Context(), o, finalizersOf(ours)); err != nil {
					t.Fatal(err)
				}
				try("all off", finalizersOf(), true)
				if err := admin.Patch(t.Context(), o, finalizersOf(ours)); err != nil {
					t.Fatal(err)
				}
				if err := admin.Delete(t.Context(), o); err != nil {
					t.Fatal(err)
				}
				try("all off what is being deleted", finalizersOf(), true)
			}
		})
	}
}

// A refusal says what was refused to whom, why, and what to do.
func TestRefusalOfFinalizers(t *testing.T) {
	ready(t)
	for what, o := range map[string]client.Object{
		"bcsnetpools refusal": pool(t, "refusal"), "bcsnetipclaims refusal": claim(t, "refusal"),
	} {
		err := as(t, "writer").Patch(t.Context(), o, finalizersOf())
		for _, want := range []string{"writer may not take the finalizer off " + what + ": ", "addresses that pods may have", "hint: "} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("there is no %q in %v", want, err)
			}
		}
	}
}
