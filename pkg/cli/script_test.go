package cli

import (
	"cmp"
	"context"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bcsnet/bcsnet/test/controlplane"
)

var update = flag.Bool("update", false, "write what the commands print into the scripts")

// TestScripts runs the scripts in testdata against the API server. Those of a noun (what their names begin with) run
// one after the other, each beginning with an empty cluster; two nouns at a time run side by side, each on a control
// plane of its own. The commands run as a user with the ClusterRole bcsnet-operator.
func TestScripts(t *testing.T) {
	t.Parallel() // with TestInstall
	fixtures := []*fixture{newFixture(t)}
	if !strings.Contains(flag.Lookup("test.run").Value.String(), "/") { // for single scripts one will do
		second := controlplane.ForTest(t, lists.option())
		if err := second.InstallManifests(t.Context()); err != nil {
			t.Fatal(err)
		}
		fixtures = append(fixtures, newFixtureOn(t, second))
	}
	nouns := make(chan []string, 100)
	for _, scripts := range scriptsByNoun(t) {
		nouns <- scripts
	}
	close(nouns)
	var wg sync.WaitGroup
	for _, f := range fixtures {
		wg.Go(func() {
			for scripts := range nouns {
				f.runScripts(t, scripts)
			}
		})
	}
	wg.Wait()
}

// scriptsByNoun returns the scripts of each noun, those of the noun with the most of them first.
func scriptsByNoun(t *testing.T) [][]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "script", "*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d scripts, %v", len(files), err)
	}
	nouns := map[string][]string{}
	for _, file := range files {
		noun, _, _ := strings.Cut(strings.TrimSuffix(filepath.Base(file), ".txtar"), "_")
		nouns[noun] = append(nouns[noun], file)
	}
	return slices.SortedFunc(maps.Values(nouns), func(a, b []string) int {
		return cmp.Or(len(b)-len(a), strings.Compare(a[0], b[0]))
	})
}

// runScripts runs scripts one after the other.
func (f *fixture) runScripts(t *testing.T, files []string) {
	t.Helper()
	root, err := controlplane.ModuleRoot()
	if err != nil {
		t.Error(err)
		return
	}
	deadline, _ := t.Deadline()
	testscript.RunT(serial{t}, testscript.Params{
		Files:               files,
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
			e.Setenv("EXAMPLES", filepath.Join(root, "examples"))
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

// serial runs the scripts of one call one after the other: they share a cluster.
type serial struct{ *testing.T }

func (s serial) Parallel() {}

func (s serial) Verbose() bool { return testing.Verbose() }

func (s serial) Run(name string, f func(testscript.T)) {
	s.T.Run(name, func(t *testing.T) { f(serial{t}) })
}

// identities writes the kubeconfigs of an administrator, and of users with the roles for people.
func (f *fixture) identities(t *testing.T) map[string]string {
	t.Helper()
	dir := t.TempDir()
	paths := map[string]string{"ADMIN": filepath.Join(dir, "admin")}
	if err := f.cluster.WriteKubeconfig(paths["ADMIN"]); err != nil {
		t.Fatal(err)
	}
	for name, role := range map[string]string{
		"OPERATOR": "bcsnet-operator", "VIEWER": "bcsnet-viewer", "VIEW": "bcsnet-aggregate-to-view",
	} {
		cfg, err := f.cluster.ServiceAccountConfig(t.Context(), "people", role)
		if err != nil {
			t.Fatal(err)
		}
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "people-" + role},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "people", Name: role}},
		}
		if _, err := f.kubernetes.RbacV1().ClusterRoleBindings().Create(t.Context(), binding,
			metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
		paths[name] = filepath.Join(dir, role)
		if err := controlplane.WriteKubeconfigFor(cfg, paths[name]); err != nil {
			t.Fatal(err)
		}
	}
	return paths
}
