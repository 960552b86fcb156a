package cli

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/bcsnet/bcsnet/test/controlplane"
)

var update = flag.Bool("update", false, "write what the commands print into the scripts")

// TestScripts runs the scripts in testdata against the API server, one after the other, each beginning
// with an empty cluster. The commands run as a user with the ClusterRole bcsnet-operator.
func TestScripts(t *testing.T) {
	f := newFixture(t)
	root, err := controlplane.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	deadline, _ := t.Deadline()
	testscript.RunT(serial{t}, testscript.Params{
		Dir:                 filepath.Join("testdata", "script"),
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Deadline:            deadline,
		Cmds:                f.commands(),
		Setup: func(e *testscript.Env) error {
			if err := f.wipe(context.Background()); err != nil {
				return err
			}
			e.Setenv("PATH", e.Getenv("PATH")+string(os.PathListSeparator)+f.binaries+
				string(os.PathListSeparator)+filepath.Join(root, "plugins", "kubectl"))
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("GORACE", "atexit_sleep_ms=0")
			e.Setenv("LANG", "C.UTF-8")
			for name, path := range f.kubeconfigs {
				e.Setenv(name, path)
			}
			e.Setenv("KUBECONFIG", f.kubeconfigs["OPERATOR"])
			return nil
		},
	})
}

// serial runs scripts one after the other: they share the cluster.
type serial struct{ *testing.T }

func (s serial) Parallel() {}

func (s serial) Verbose() bool { return testing.Verbose() }

func (s serial) Run(name string, f func(testscript.T)) {
	s.T.Run(name, func(t *testing.T) { f(serial{t}) })
}

// identities writes the kubeconfigs of an administrator, and of users with the roles for people.
func identities(t *testing.T, clients kubernetes.Interface) map[string]string {
	t.Helper()
	dir := t.TempDir()
	paths := map[string]string{"ADMIN": filepath.Join(dir, "admin")}
	if err := cluster.WriteKubeconfig(paths["ADMIN"]); err != nil {
		t.Fatal(err)
	}
	for name, role := range map[string]string{"OPERATOR": "bcsnet-operator", "VIEWER": "bcsnet-viewer"} {
		cfg, err := cluster.ServiceAccountConfig(t.Context(), "people", role)
		if err != nil {
			t.Fatal(err)
		}
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "people-" + role},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "people", Name: role}},
		}
		if _, err := clients.RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
		paths[name] = filepath.Join(dir, role)
		if err := controlplane.WriteKubeconfigFor(cfg, paths[name]); err != nil {
			t.Fatal(err)
		}
	}
	return paths
}
