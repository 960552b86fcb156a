package cli

import (
	"context"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// node is what is of interest of a Node.
type node struct {
	name, state string
	addrs       []netip.Addr // internal first
}

// nodes reads all nodes.
func (s *session) nodes(ctx context.Context) ([]node, error) {
	c, err := s.dynamic()
	if err != nil {
		return nil, err
	}
	var out []node
	options := metav1.ListOptions{Limit: pageSize}
	for {
		page, err := c.Resource(corev1.SchemeGroupVersion.WithResource("nodes")).List(ctx, options)
		if err != nil {
			return nil, s.explain(err)
		}
		for _, item := range page.Items {
			var o corev1.Node
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(item.Object, &o); err != nil {
				return nil, err
			}
			out = append(out, readNode(&o))
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			return out, nil
		}
	}
}

func readNode(o *corev1.Node) node {
	n := node{name: o.Name, state: hostNotReady}
	for _, kind := range []corev1.NodeAddressType{corev1.NodeInternalIP, corev1.NodeExternalIP} {
		for _, a := range o.Status.Addresses {
			if ip, err := ipam.ParseAddr(a.Address); err == nil && a.Type == kind {
				n.addrs = append(n.addrs, ip)
			}
		}
	}
	for _, c := range o.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
			n.state = hostReady
		}
	}
	return n
}
