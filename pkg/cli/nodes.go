package cli

import (
	"context"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

// node is what is of interest of a Node.
type node struct {
	name, state string
	since       time.Time    // of state, where the node says
	addrs       []netip.Addr // internal first
	internal    []netip.Addr
}

// listNodes reads all nodes.
func listNodes(ctx context.Context, s *app.App) ([]node, error) { return listNodesWith(ctx, s, "") }

// listNodesWith reads the nodes that a label selector matches.
func listNodesWith(ctx context.Context, s *app.App, selector string) ([]node, error) {
	c, err := s.Dynamic()
	if err != nil {
		return nil, err
	}
	var out []node
	options := metav1.ListOptions{LabelSelector: selector, Limit: pageSize}
	for {
		page, err := c.Resource(nodeResource()).List(ctx, options)
		if err != nil {
			return nil, explainError(s, err)
		}
		for _, item := range page.Items {
			n, err := readNode(&item)
			if err != nil {
				return nil, err
			}
			out = append(out, n)
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			return out, nil
		}
	}
}

// getNode reads one node; one that is not there is an error.
func getNode(ctx context.Context, s *app.App, name string) (node, error) {
	c, err := s.Dynamic()
	if err != nil {
		return node{}, err
	}
	o, err := c.Resource(nodeResource()).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return node{}, app.Refuse(app.ReasonNodeNotFound, "there is no node %s", name).WithHint("see them: kubectl get nodes")
	case err != nil:
		return node{}, explainError(s, err)
	}
	return readNode(o)
}

func readNode(u *unstructured.Unstructured) (node, error) {
	var o corev1.Node
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &o); err != nil {
		return node{}, err
	}
	n := node{name: o.Name, state: hostNotReady}
	for _, kind := range []corev1.NodeAddressType{corev1.NodeInternalIP, corev1.NodeExternalIP} {
		for _, a := range o.Status.Addresses {
			if ip, err := ipaddr.ParseAddr(a.Address); err == nil && a.Type == kind {
				n.addrs = append(n.addrs, ip)
				if kind == corev1.NodeInternalIP {
					n.internal = append(n.internal, ip)
				}
			}
		}
	}
	for _, c := range o.Status.Conditions {
		if c.Type != corev1.NodeReady {
			continue
		}
		n.since = c.LastTransitionTime.Time
		if c.Status == corev1.ConditionTrue {
			n.state = hostReady
		}
	}
	return n, nil
}
