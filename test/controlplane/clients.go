package controlplane

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
)

// Scheme returns a scheme with the objects of Kubernetes and ours.
func Scheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	return s, errors.Join(clientgoscheme.AddToScheme(s), v1.AddToScheme(s))
}

// Admin returns a client that makes changes as users and kubelets do, with all rights and without a rate limit.
func (cp *ControlPlane) Admin() (client.Client, error) {
	scheme, err := Scheme()
	if err != nil {
		return nil, err
	}
	cfg := rest.CopyConfig(cp.Config)
	cfg.QPS = -1
	return client.New(cfg, client.Options{Scheme: scheme})
}

// AdminFor does the same for one test. Its connections end with the test.
func (cp *ControlPlane) AdminFor(t testing.TB) client.Client {
	t.Helper()
	scheme, err := Scheme()
	if err != nil {
		t.Fatal(err)
	}
	h, err := rest.HTTPClientFor(cp.Config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.CloseIdleConnections)
	c, err := client.New(cp.Config, client.Options{HTTPClient: h, Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// ControllerConfig installs the manifests, and returns the controller's identity with the rights of the manifests.
func (cp *ControlPlane) ControllerConfig(ctx context.Context) (*rest.Config, error) {
	if err := cp.InstallManifests(ctx); err != nil {
		return nil, err
	}
	return cp.ServiceAccountConfig(ctx, SystemNamespace, ControllerName)
}

// PodReaders returns the two readers of pods that the controller uses: a filled cache, and the API server. The cache
// runs in parts until the context ends. transform returns the cached part of an object; nil means all of it.
func PodReaders(
	ctx context.Context, t testing.TB, cfg *rest.Config, h *http.Client, parts *sync.WaitGroup,
	transform toolscache.TransformFunc,
) (cached cache.Cache, live client.Reader) {
	t.Helper()
	scheme, err := Scheme()
	if err != nil {
		t.Fatal(err)
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Pod"), meta.RESTScopeNamespace)
	c, err := cache.New(cfg, cache.Options{HTTPClient: h, Scheme: scheme, Mapper: mapper, DefaultTransform: transform})
	if err != nil {
		t.Fatal(err)
	}
	live, err = client.New(cfg, client.Options{HTTPClient: h, Scheme: scheme, Mapper: mapper})
	if err != nil {
		t.Fatal(err)
	}
	parts.Go(func() {
		if err := c.Start(ctx); err != nil {
			t.Error(err)
		}
	})
	if _, err := c.GetInformer(ctx, &corev1.Pod{}); err != nil {
		t.Fatal(err)
	}
	if !c.WaitForCacheSync(ctx) {
		t.Fatal("the cache of pods does not fill")
	}
	return c, live
}
