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

// AssetsEnv names the directory of the binaries, as it does for envtest; without it they are in
// bin/kube of this module.
const AssetsEnv = "KUBEBUILDER_ASSETS"

// ErrNoBinaries is what Start returns, wrapped, when the binaries are not there.
var ErrNoBinaries = errors.New("run `make kube` first")

const modulePath = "github.com/bcsnet/bcsnet"

// ModuleRoot walks up from the working directory to the directory of this module's go.mod.
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

// declaresModule reports whether a go.mod is ours, and not that of a module nested in hack/.
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

// findAssets returns the absolute path of the directory that holds all the named binaries.
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
