package controlplane_test

import (
	"context"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/bcsnet/bcsnet/test/controlplane"
)

var shared *controlplane.ControlPlane

func TestMain(m *testing.M) {
	if role := os.Getenv(roleEnv); role != "" {
		os.Exit(play(role))
	}
	os.Exit(controlplane.Main(m, &shared))
}

func TestStartIsReady(t *testing.T) {
	out, err := shared.Kubectl(t.Context(), "get", "--raw", "/readyz").CombinedOutput()
	if err != nil || string(out) != "ok" {
		t.Errorf("kubectl get --raw /readyz = %q, %v; want ok", out, err)
	}
}

func TestKubeconfigIsSelfContained(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := shared.WriteKubeconfig(file); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(data), shared.Dir) {
		t.Errorf("the kubeconfig points into %s", shared.Dir)
	}
	out, err := shared.Kubectl(t.Context(), "--kubeconfig", file, "auth", "whoami", "-o",
		"jsonpath={.status.userInfo.username}").CombinedOutput()
	if err != nil || string(out) != "kubernetes-admin" {
		t.Errorf("whoami = %q, %v", out, err)
	}
}

func TestFreshServiceAccountMayNothing(t *testing.T) {
	cfg, err := shared.ServiceAccountConfig(t.Context(), "somewhere", "nobody")
	if err != nil {
		t.Fatal(err)
	}
	clients := clientsFor(t, cfg)
	_, err = clients.CoreV1().Pods("somewhere").List(t.Context(), metav1.ListOptions{})
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "system:serviceaccount:somewhere:nobody") {
		t.Errorf("List pods: %v, want Forbidden for the ServiceAccount", err)
	}
	if _, err := shared.ServiceAccountConfig(t.Context(), "somewhere", "nobody"); err != nil {
		t.Errorf("a second time: %v", err)
	}
}

func TestInstallCRDs(t *testing.T) {
	const crd = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: lamps.example.org}
spec:
  group: example.org
  names: {kind: Lamp, plural: lamps, singular: lamp}
  scope: Cluster
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
`
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "lamps.yaml"), []byte(crd), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 { // also over itself
		if err := shared.InstallCRDs(t.Context(), dir); err != nil {
			t.Fatal(err)
		}
	}
	out, err := shared.Kubectl(t.Context(), "get", "lamps").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "No resources found") {
		t.Errorf("kubectl get lamps = %q, %v", out, err)
	}
	if err := shared.InstallCRDs(t.Context(), filepath.Join(dir, "missing")); err == nil {
		t.Error("a missing directory is no error")
	}
}

func TestAPIServerComesBackWithPortAndData(t *testing.T) {
	clients := clientsFor(t, shared.Config)
	mark := createConfigMap(t, clients)

	for name, away := range map[string]func() error{"stop": shared.StopAPIServer, "kill": shared.KillAPIServer} {
		t.Run(name, func(t *testing.T) {
			if err := away(); err != nil {
				t.Fatal(err)
			}
			if _, err := clients.CoreV1().ConfigMaps("default").Get(t.Context(), mark.Name, metav1.GetOptions{}); err == nil {
				t.Error("the API server answers while it is away")
			}
			if err := shared.StartAPIServer(t.Context()); err != nil {
				t.Fatal(err)
			}
			wantConfigMap(t, clients, mark)
		})
	}
	if err := shared.RestartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantConfigMap(t, clients, mark)
}

func TestPausedAPIServerAnswersLater(t *testing.T) {
	clients := clientsFor(t, shared.Config)
	mark := createConfigMap(t, clients)
	if err := shared.PauseAPIServer(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := clients.CoreV1().ConfigMaps("default").Get(ctx, mark.Name, metav1.GetOptions{}); !isTimeout(err) {
		t.Errorf("Get from a paused API server: %v, want a timeout", err)
	}
	if err := shared.ResumeAPIServer(); err != nil {
		t.Fatal(err)
	}
	wantConfigMap(t, clients, mark)
}

func TestEtcdKeepsWhatItAcknowledged(t *testing.T) {
	clients := clientsFor(t, shared.Config)
	mark := createConfigMap(t, clients)
	if err := shared.KillEtcd(); err != nil {
		t.Fatal(err)
	}
	if err := shared.StartEtcd(t.Context()); err != nil {
		t.Fatal(err)
	}
	// The API server's own client needs a moment to find etcd again.
	controlplane.Eventually(t, func() error {
		_, err := clients.CoreV1().ConfigMaps("default").Get(t.Context(), mark.Name, metav1.GetOptions{})
		return err
	})
	wantConfigMap(t, clients, mark)
}

func TestStopLeavesNothing(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	cp, err := controlplane.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	before := processesUnder(t, cp.Dir)
	if len(before) != 2 {
		t.Errorf("running: %q, want etcd and kube-apiserver", before)
	}
	for range 2 { // the second is a no-op
		if err := cp.Stop(); err != nil {
			t.Error(err)
		}
	}
	if after := processesUnder(t, cp.Dir); len(after) != 0 {
		t.Errorf("still running: %q", after)
	}
	if _, err := os.Stat(cp.Dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is still there", cp.Dir)
	}
}

func TestDataDirIsKept(t *testing.T) {
	dir := t.TempDir()
	first, err := controlplane.Start(t.Context(), controlplane.WithDataDir(dir))
	if err != nil {
		t.Fatal(err)
	}
	mark := createConfigMap(t, clientsFor(t, first.Config))
	if err := first.Stop(); err != nil {
		t.Fatal(err)
	}
	second := controlplane.ForTest(t, controlplane.WithDataDir(dir))
	wantConfigMap(t, clientsFor(t, second.Config), mark)
}

func TestStartFailureNamesTheReason(t *testing.T) {
	t.Run("bad flag", func(t *testing.T) {
		_, err := controlplane.Start(t.Context(),
			controlplane.WithLogDir(t.ArtifactDir()), controlplane.WithArgs("etcd", "--no-such-flag"))
		if err == nil || !strings.Contains(err.Error(), "etcd did not become ready") ||
			!strings.Contains(err.Error(), "no-such-flag") {
			t.Errorf("Start = %v, want etcd's own words", err)
		}
	})
	t.Run("no binaries", func(t *testing.T) {
		t.Setenv(controlplane.AssetsEnv, t.TempDir())
		_, err := controlplane.Start(t.Context())
		if !errors.Is(err, controlplane.ErrNoBinaries) || !strings.Contains(err.Error(), "run `make kube` first") {
			t.Errorf("Start = %v, want %v", err, controlplane.ErrNoBinaries)
		}
	})
	t.Run("cancelled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := controlplane.Start(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("Start = %v, want %v", err, context.Canceled)
		}
	})
}

// The binaries serve whoever writes a plain envtest test, too.
func TestPlainEnvtest(t *testing.T) {
	root, err := controlplane.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	if os.Getenv(controlplane.AssetsEnv) == "" {
		t.Setenv(controlplane.AssetsEnv, filepath.Join(root, "bin", "kube"))
	}
	log.SetLogger(logr.Discard()) // else it complains, with a stack
	env := &envtest.Environment{}
	cfg, err := env.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Error(err)
		}
	})
	info, err := clientsFor(t, cfg).Discovery().ServerVersion()
	if err != nil || !strings.HasPrefix(info.GitVersion, "v1.") {
		t.Errorf("ServerVersion = %v, %v", info, err)
	}
}

func clientsFor(t *testing.T, cfg *rest.Config) kubernetes.Interface {
	t.Helper()
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseIdleConnections)
	clients, err := kubernetes.NewForConfigAndClient(cfg, client)
	if err != nil {
		t.Fatal(err)
	}
	return clients
}

func createConfigMap(t *testing.T, clients kubernetes.Interface) *corev1.ConfigMap {
	t.Helper()
	mark := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "mark-"}}
	mark, err := clients.CoreV1().ConfigMaps("default").Create(t.Context(), mark, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return mark
}

func wantConfigMap(t *testing.T, clients kubernetes.Interface, want *corev1.ConfigMap) {
	t.Helper()
	got, err := clients.CoreV1().ConfigMaps("default").Get(t.Context(), want.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got.UID != want.UID || got.ResourceVersion != want.ResourceVersion {
		t.Errorf("got %s at %s, want %s at %s", got.UID, got.ResourceVersion, want.UID, want.ResourceVersion)
	}
}

func isTimeout(err error) bool {
	var e *url.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &e) && e.Timeout()
}
