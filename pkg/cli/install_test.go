package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/bcsnet/bcsnet/test/controlplane"
)

// TestInstall runs the scripts that install and uninstall, as the administrator of a cluster of their own:
// they take away what the other scripts need.
func TestInstall(t *testing.T) {
	t.Parallel() // with TestScripts
	cp := controlplane.ForTest(t, controlplane.WithControllerManager())
	admin := filepath.Join(t.TempDir(), "admin")
	if err := cp.WriteKubeconfig(admin); err != nil {
		t.Fatal(err)
	}
	testscript.RunT(serial{t}, testscript.Params{
		Dir:                 filepath.Join("testdata", "install"),
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			root, err := controlplane.ModuleRoot()
			if err != nil {
				return err
			}
			e.Setenv("PATH", e.Getenv("PATH")+string(os.PathListSeparator)+filepath.Join(root, "bin", "kube"))
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("GORACE", "atexit_sleep_ms=0")
			e.Setenv("LANG", "C.UTF-8")
			e.Setenv("KUBECONFIG", admin)
			e.Setenv("OTHERS", filepath.Join(root, "test", "install", "testdata", "others.yaml"))
			return nil
		},
	})
}
