package kubevirt

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/bcsnet/bcsnet/pkg/workload"
)

// Migrations reads virtual machines and their migrations from the API server, never from a cache. KubeVirt need not be
// installed until a read: its resources may come and go.
type Migrations struct {
	rest rest.Interface
	off  func() string
}

// NewMigrations returns a reader. off returns the reason why no address gets a second attachment at present; empty if
// one may.
func NewMigrations(cfg *rest.Config, client *http.Client, off func() string) (*Migrations, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.APIPath, cfg.GroupVersion = "/apis", &schema.GroupVersion{Group: "kubevirt.io", Version: "v1"}
	cfg.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	cfg.QPS, cfg.RateLimiter = -1, nil
	c, err := rest.RESTClientForConfigAndClient(cfg, client)
	if err != nil {
		return nil, err
	}
	return &Migrations{rest: c, off: off}, nil
}

// Off returns the reason why no address gets a second attachment at present; empty if one may.
func (m *Migrations) Off() string { return m.off() }

// Denies returns the reason why the pod to is not the target of a live migration of the machine whose pod is from;
// empty if it is. Both pods must come from the API server.
func (m *Migrations) Denies(ctx context.Context, from, to workload.Pod) (why string, err error) {
	if !to.Controller.IsMachine() {
		return denies(from, to, nil, nil), nil
	}
	vmi, err := read[Machine](ctx, m.rest, "virtualmachineinstances", to.Namespace, to.Controller.Name)
	if err != nil {
		return "", err
	}
	var by *Migration
	if to.Migration.Name != "" {
		by, err = read[Migration](ctx, m.rest, "virtualmachineinstancemigrations", to.Namespace, to.Migration.Name)
		if err != nil {
			return "", err
		}
	}
	return denies(from, to, vmi, by), nil
}

// read reads an object; nil if the object or its resource does not exist.
func read[T any](ctx context.Context, c rest.Interface, resource, namespace, name string) (*T, error) {
	body, err := c.Get().Namespace(namespace).Resource(resource).Name(name).SetHeader("Accept", "application/json").
		DoRaw(ctx)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading %s %s/%s: %w", resource, namespace, name, err)
	}
	o := new(T)
	if err := json.Unmarshal(body, o); err != nil {
		return nil, fmt.Errorf("%s %s/%s cannot be read: %w", resource, namespace, name, err)
	}
	return o, nil
}
