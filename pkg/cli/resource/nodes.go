package resource

import (
	"context"
	"iter"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/hosts"
	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// Node has the fields of a Node that commands use.
type Node struct {
	hosts.Node
	State string
}

// Table returns the nodes in a table by address.
func Table(nodes []Node) *hosts.Table {
	t := hosts.NewTable()
	for _, n := range nodes {
		t.Set(n.Node)
	}
	return t
}

// Known returns a node for an index.
func (n Node) Known() ipam.Node {
	return ipam.Node{Addrs: n.Addrs, Internal: n.Internal, Labels: n.Labels}
}

// Known iterates over nodes for an index.
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

// ListNodesWith reads the nodes that match a label selector.
func ListNodesWith(ctx context.Context, s *app.App, selector string) ([]Node, error) {
	c, err := s.Dynamic()
	if err != nil {
		return nil, err
	}
	return readAll(ctx, s, c.Resource(NodeResource()), metav1.ListOptions{LabelSelector: selector}, ReadNode)
}

// GetNode reads one node. It fails if the node does not exist.
func GetNode(ctx context.Context, s *app.App, name string) (Node, error) {
	c, err := s.Dynamic()
	if err != nil {
		return Node{}, err
	}
	o, err := c.Resource(NodeResource()).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return Node{}, app.Refuse(app.ReasonNodeNotFound, "there is no node %s",
			name).WithHint("see them: kubectl get nodes")
	case err != nil:
		return Node{}, Explain(s, err)
	}
	return ReadNode(o)
}

// ReadNode decodes a node.
func ReadNode(u *unstructured.Unstructured) (Node, error) {
	var o corev1.Node
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &o); err != nil {
		return Node{}, err
	}
	n := Node{Node: hosts.Of(&o), State: HostNotReady}
	if n.Ready {
		n.State = HostReady
	}
	return n, nil
}
