package rights

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

var (
	cluster *controlplane.ControlPlane
	admin   client.Client
)

// The controller manager deletes what is in namespaces, collects what has lost its owner, aggregates roles and migrates
// what is stored, each as an account of its own.
func TestMain(m *testing.M) {
	os.Exit(controlplane.Main(m, &cluster, controlplane.WithControllerManager(),
		controlplane.WithArgs("kube-apiserver", "--feature-gates=StorageVersionMigrator=true",
			"--runtime-config=storagemigration.k8s.io/v1beta1=true"),
		controlplane.WithArgs("kube-controller-manager", "--feature-gates=StorageVersionMigrator=true")))
}

// prepared installs the manifests, with the roles that users add to them, and binds roles to users of tests.
var prepared = sync.OnceValue(func() (err error) {
	ctx := context.Background()
	if admin, err = cluster.Prepare(ctx); err != nil {
		return err
	}
	if err := bindAlone(ctx); err != nil {
		return err
	}
	root, err := controlplane.ModuleRoot()
	if err != nil {
		return err
	}
	config := func(path ...string) string { return filepath.Join(append([]string{root, "config"}, path...)...) }
	args := []string{"apply", "--server-side"}
	for _, file := range []string{
		config("floatingip", "role.yaml"), config("hostnic", "role.yaml"), config("ipamclaims", "role.yaml"), config("clusterapi", "role.yaml"), config("services", "role.yaml"),
		config("authors", "policy.yaml"), config("node", "service_account.yaml"), config("node", "role.yaml"), config("node", "role_binding.yaml"),
	} {
		args = append(args, "-f", file)
	}
	if out, err := cluster.Kubectl(ctx, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	for _, role := range ownRoles() {
		if err := admin.Create(ctx, role); err != nil {
			return err
		}
	}
	for user, role := range users() {
		if err := admin.Create(ctx, bindingOf(user, role)); err != nil {
			return err
		}
	}
	return effective(ctx, true)
})

// ready waits until all that the tests share is there.
func ready(t *testing.T) {
	t.Helper()
	if err := prepared(); err != nil {
		t.Fatal(err)
	}
}

// alone is an account with the roles that the controller has before any are added: those of the installation without
// nodeCapacity, and of nothing that is off by default.
const alone = "bcsnet-controller-alone"

// bindAlone binds the controller's roles to that account.
func bindAlone(ctx context.Context) error {
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: system, Name: alone}}
	controllers := func(s rbacv1.Subject) bool {
		return s.Kind == rbacv1.ServiceAccountKind && s.Namespace == system && s.Name == controlplane.ControllerName
	}
	var everywhere rbacv1.ClusterRoleBindingList
	var inNamespaces rbacv1.RoleBindingList
	if err := errors.Join(admin.List(ctx, &everywhere), admin.List(ctx, &inNamespaces)); err != nil {
		return err
	}
	var all []client.Object
	for _, b := range everywhere.Items {
		if slices.ContainsFunc(b.Subjects, controllers) && b.RoleRef.Name != "bcsnet-controller-node-capacity" {
			all = append(all, &rbacv1.ClusterRoleBinding{
				ObjectMeta: metav1.ObjectMeta{Name: "alone-" + b.Name}, RoleRef: b.RoleRef, Subjects: subjects,
			})
		}
	}
	for _, b := range inNamespaces.Items {
		if slices.ContainsFunc(b.Subjects, controllers) {
			all = append(all, &rbacv1.RoleBinding{
				ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: "alone-" + b.Name}, RoleRef: b.RoleRef,
				Subjects: subjects,
			})
		}
	}
	for _, o := range all {
		if err := admin.Create(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

// users are those of the tests, and the ClusterRole of each.
func users() map[string]string {
	return map[string]string{
		"viewer": "bcsnet-viewer", "operator": "bcsnet-operator", "scheduler": "bcsnet-scheduler", "plugin": "bcsnet-node",
		"see": "view", "tenant": "admin", "writer": "writer", "backup": "backup",
	}
}

// ownRoles are those that somebody might write: all of RBAC's verbs on the objects, and the same with manage.
func ownRoles() []client.Object {
	resources := []string{v1.PoolResource, v1.IPResource, v1.ClaimResource}
	verbs := []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}
	role := func(name string, verbs ...string) client.Object {
		return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{v1.GroupVersion.Group}, Resources: resources, Verbs: verbs},
		}}
	}
	return []client.Object{role("writer", verbs...), role("backup", append(verbs, "manage")...)}
}

func bindingOf(user, role string) client.Object {
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "test-" + role},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
}

// configAs returns what acts as a user, as the API server's administrator may.
func configAs(user string, groups ...string) *rest.Config {
	cfg := rest.CopyConfig(cluster.Config)
	cfg.QPS = -1
	cfg.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: append(groups, "system:authenticated")}
	return cfg
}

// as returns a client of a user.
func as(t *testing.T, user string, groups ...string) client.Client {
	t.Helper()
	c, err := clientOf(configAs(user, groups...))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func clientOf(cfg *rest.Config) (client.Client, error) {
	scheme, err := controlplane.Scheme()
	if err != nil {
		return nil, err
	}
	return client.New(cfg, client.Options{Scheme: scheme})
}

// serviceAccount names a ServiceAccount as a user.
func serviceAccount(namespace, name string) string {
	return "system:serviceaccount:" + namespace + ":" + name
}

// effective waits until the API server has read the roles, and knows of the policies or has forgotten them.
func effective(ctx context.Context, policies bool) error {
	writer, err := clientOf(configAs("writer"))
	if err != nil {
		return err
	}
	backup, err := clientOf(configAs("backup"))
	if err != nil {
		return err
	}
	return controlplane.WaitFor(ctx, time.Minute, func() error {
		err := writer.Create(ctx, address("10.255.255.1"), client.DryRunAll)
		if denied := refusedBy(err, addresses); denied != policies || !denied && err != nil {
			return errors.Join(fmt.Errorf("policies: %t; who has no manage makes an address or not", policies), err)
		}
		if err := backup.Create(ctx, address("10.255.255.1"), client.DryRunAll); err != nil || !policies {
			return err
		}
		p := &v1.BCSNetPool{ObjectMeta: metav1.ObjectMeta{Name: "named"},
			Spec: v1.BCSNetPoolSpec{Net: "10.9.0.0", Mask: 24, Gateway: "10.9.0.1"}}
		if err := backup.Create(ctx, p, client.DryRunAll); err != nil || p.Annotations[v1.ChangedByAnnotation] == "" {
			return errors.Join(err, errors.New("a pool does not name yet who made it"))
		}
		return nil
	})
}

// The policies, by their names.
const addresses, finalizers = "bcsnet-addresses", "bcsnet-finalizers"

// refusedBy reports whether it was a policy that refused a write, and not RBAC.
func refusedBy(err error, policy string) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "ValidatingAdmissionPolicy '"+policy+"'")
}

// address returns the object of an address that is Available.
func address(name string) *v1.BCSNetIP {
	return &v1.BCSNetIP{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1.BCSNetIPSpec{Pool: "none", Mask: 24, Gateway: "10.255.255.254"},
	}
}
