package resource

import (
	"context"
	"encoding/json"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

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
