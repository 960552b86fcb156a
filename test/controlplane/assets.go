package controlplane

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

const (
	etcdBinary              = "etcd"
	apiserverBinary         = "kube-apiserver"
	controllerManagerBinary = "kube-controller-manager"
	schedulerBinary         = "kube-scheduler"
	kwokBinary              = "kwok"
	kubectlBinary           = "kubectl"
)

// AssetsEnv is the variable with the directory of the binaries, as in envtest. Without it, bin/kube of this module is
// used.
const AssetsEnv = "KUBEBUILDER_ASSETS"

// ErrNoBinaries is wrapped in the error of Start if the binaries are missing.
var ErrNoBinaries = errors.New("run `make kube` first")

const modulePath = "github.com/bcsnet/bcsnet"

// ModuleRoot returns the directory of this module's go.mod, at or above the working directory.
func ModuleRoot() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		if declaresModule(filepath.Join(dir, "go.mod")) {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("%s is not inside the module %s", start, modulePath)
		}
	}
}

// declaresModule reports whether a go.mod is ours, not that of a module nested in hack/.
func declaresModule(file string) bool {
	f, err := os.Open(file)
	if err != nil {
		return false
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if lines.Text() == "module "+modulePath {
			return true
		}
	}
	return false
}

// findAssets returns the absolute path of the directory with all the named binaries.
func findAssets(names ...string) (string, error) {
	dir := os.Getenv(AssetsEnv)
	if dir == "" {
		root, err := ModuleRoot()
		if err != nil {
			return "", fmt.Errorf("%w; or set %s", err, AssetsEnv)
		}
		dir = filepath.Join(root, "bin", "kube")
	}
	for _, name := range names {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || info.Mode()&0o111 == 0 {
			return "", fmt.Errorf("%s is not in %s: %w", name, dir, ErrNoBinaries)
		}
	}
	return filepath.Abs(dir)
}
