package resource

import (
	"context"
	"iter"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/bcsnet/bcsnet/pkg/access"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

// Node has the fields of a Node that commands show and compare.
type Node struct {
	Name, State string
	Since       time.Time    // of State, where the node says
	Addrs       []netip.Addr // internal first
	Internal    []netip.Addr
	Further     []netip.Addr // those that its annotation gives it
	Labels      map[string]string
}

// Known returns a node as an index takes it.
func (n Node) Known() ipam.Node {
	return ipam.Node{Addrs: n.Addrs, Internal: n.Internal, Labels: n.Labels}
}

// Known iterates over nodes as an index takes them.
func Known(nodes []Node) iter.Seq[ipam.Node] {
	return func(yield func(ipam.Node) bool) {
		for _, n := range nodes {
			if !yield(n.Known()) {
				return
			}
		}
	}
}

// ListNodes reads all nodes.
func ListNodes(ctx context.Context, s *app.App) ([]Node, error) { return ListNodesWith(ctx, s, "") }

// ListNodesWith reads the nodes that a label selector matches.
func ListNodesWith(ctx context.Context, s *app.App, selector string) ([]Node, error) {
	c, err := s.Dynamic()
	if err != nil {
		return nil, err
	}
	var out []Node
	options := metav1.ListOptions{LabelSelector: selector, Limit: PageSize}
	for {
		page, err := c.Resource(NodeResource()).List(ctx, options)
		if err != nil {
			return nil, Explain(s, err)
		}
		for _, item := range page.Items {
			n, err := ReadNode(&item)
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

// GetNode reads one node; one that is not there is an error.
func GetNode(ctx context.Context, s *app.App, name string) (Node, error) {
	c, err := s.Dynamic()
	if err != nil {
		return Node{}, err
	}
	o, err := c.Resource(NodeResource()).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return Node{}, app.Refuse(app.ReasonNodeNotFound, "there is no node %s", name).WithHint("see them: kubectl get nodes")
	case err != nil:
		return Node{}, Explain(s, err)
	}
	return ReadNode(o)
}

// ReadNode reads a node from an object as the API server has it.
func ReadNode(u *unstructured.Unstructured) (Node, error) {
	var o corev1.Node
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &o); err != nil {
		return Node{}, err
	}
	n := Node{Name: o.Name, State: HostNotReady, Labels: o.Labels}
	n.Further = access.FurtherHosts(o.Annotations[access.HostsAnnotation])
	for _, kind := range []corev1.NodeAddressType{corev1.NodeInternalIP, corev1.NodeExternalIP} {
		for _, a := range o.Status.Addresses {
			if ip, err := ipaddr.ParseAddr(a.Address); err == nil && a.Type == kind {
				n.Addrs = append(n.Addrs, ip)
				if kind == corev1.NodeInternalIP {
					n.Internal = append(n.Internal, ip)
				}
			}
		}
	}
	for _, c := range o.Status.Conditions {
		if c.Type != corev1.NodeReady {
			continue
		}
		n.Since = c.LastTransitionTime.Time
		if c.Status == corev1.ConditionTrue {
			n.State = HostReady
		}
	}
	return n, nil
}
