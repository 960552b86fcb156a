package resource

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/pager"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// podPage is the number of pods per request: the next page is read while this one is decoded.
const podPage = 1000

// AllPods reads the pods of all namespaces.
func AllPods(ctx context.Context, s *app.App) (all []workload.Pod, err error) {
	c, err := CoreClient(s)
	if err != nil {
		return nil, err
	}
	pages := pager.New(func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return c.Pods("").List(ctx, o)
	})
	pages.PageSize = podPage
	err = pages.EachListItem(ctx, metav1.ListOptions{}, func(o runtime.Object) error {
		if p, ok := o.(*corev1.Pod); ok {
			all = append(all, workload.FromObject(p))
		}
		return nil
	})
	return all, err
}

// CoreClient returns a client for pods that reads protobuf, the fastest encoding.
func CoreClient(s *app.App) (*typedcorev1.CoreV1Client, error) {
	cfg, err := s.Connect()
	if err != nil {
		return nil, err
	}
	cfg = rest.CopyConfig(cfg)
	cfg.ContentType = runtime.ContentTypeProtobuf
	cfg.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	c, err := typedcorev1.NewForConfig(cfg)
	if err != nil {
		return nil, s.ConfigProblem(err)
	}
	return c, nil
}

// IsPodWord reports whether a word names the kind Pod.
func IsPodWord(word string) bool { return slices.Contains([]string{"pod", "pods", "po"}, word) }

// PodWord returns the pod of an argument, which may have the form pod/NAME.
func PodWord(word string) string {
	if kind, name, ok := strings.Cut(strings.TrimSpace(word), "/"); ok && IsPodWord(kind) {
		return name
	}
	return strings.TrimSpace(word)
}

// ipamPlugin is the type of bcsnet's IPAM plugin in network configurations.
const ipamPlugin = "bcsnet-ipam"

// attachment has the needed fields of a network configuration or of a plugin in its list.
type attachment struct {
	IPAM struct {
		Type    string `json:"type"`
		Network string `json:"network"`
	} `json:"ipam"`
	Plugins []attachment `json:"plugins"`
}

// NetworkOfInterface returns the network in the NetworkAttachmentDefinition of a pod's interface; may be empty. asks is
// false if the definition does not use bcsnet or cannot be read.
func NetworkOfInterface(
	ctx context.Context, s *app.App, namespace string, i workload.Interface,
) (network string, asks bool) {
	c, err := s.Dynamic()
	if err != nil {
		return "", false
	}
	name := i.Attachment
	if of, rest, ok := strings.Cut(name, "/"); ok {
		namespace, name = of, rest
	}
	kind := schema.GroupVersionResource{
		Group: "k8s.cni.cncf.io", Version: "v1", Resource: "network-attachment-definitions",
	}
	o, err := c.Resource(kind).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return "", false
	}
	text, _, _ := unstructured.NestedString(o.Object, "spec", "config")
	var config attachment
	if json.Unmarshal([]byte(text), &config) != nil {
		return "", false
	}
	for _, p := range append(config.Plugins, config) {
		if p.IPAM.Type == ipamPlugin {
			return p.IPAM.Network, true
		}
	}
	return "", false
}

// NewResolver returns a resolver that finds the policies of pods by reads from the API server with the user's rights.
// It assumes that the controller has --ipam-claims but not --shared-pools-for-all, because the cluster does not show
// the controller's flags.
func NewResolver(s *app.App) (*workload.Resolver, error) {
	cfg, err := s.Connect()
	if err != nil {
		return nil, err
	}
	h, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, s.ConfigProblem(err)
	}
	owners, err := workload.NewOwners(cfg, h, s.Now, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, s.ConfigProblem(err)
	}
	api, err := NewClaims(s)
	if err != nil {
		return nil, err
	}
	return &workload.Resolver{
		Owners: owners, Namespace: SystemNamespace, ClaimsFor: api.MadeFor, IPAMClaims: true,
		ServesShared: api.servesShared,
	}, nil
}
