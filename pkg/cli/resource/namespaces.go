package resource

import (
	"context"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
)

func namespaceResource() schema.GroupVersionResource {
	return corev1.SchemeGroupVersion.WithResource("namespaces")
}

// ListNamespaces reads the namespaces of the cluster.
func ListNamespaces(ctx context.Context, s *app.App) ([]unstructured.Unstructured, error) {
	c, err := s.Dynamic()
	if err != nil {
		return nil, err
	}
	return ListPages(ctx, c.Resource(namespaceResource()), metav1.ListOptions{})
}

// LabelsOfNamespace reads the labels of one namespace. It returns the API server's error unchanged.
func LabelsOfNamespace(ctx context.Context, s *app.App, name string) (map[string]string, error) {
	c, err := s.Dynamic()
	if err != nil {
		return nil, err
	}
	o, err := c.Resource(namespaceResource()).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return o.GetLabels(), nil
}

// LabelsOfNamespaces reads the labels of all namespaces. If the user may not list them, it warns and returns none.
func LabelsOfNamespaces(ctx context.Context, s *app.App) (map[string]map[string]string, error) {
	all, err := ListNamespaces(ctx, s)
	switch {
	case apierrors.IsForbidden(err):
		s.Say.Warn("you may not list namespaces: which of them the change concerns is known only of those that pools " +
			"name")
		return nil, nil
	case err != nil:
		return nil, Explain(s, err)
	}
	labels := make(map[string]map[string]string, len(all))
	for _, n := range all {
		labels[n.GetName()] = n.GetLabels()
	}
	return labels, nil
}

// NamespacesCell lists the namespaces to which a pool is bound: its names, and its selector in brackets. It is empty
// for a pool of the default chain.
func NamespacesCell(p Pool) string {
	text := strings.Join(p.Spec.Namespaces, ",")
	switch s := p.Spec.NamespaceSelector; {
	case s != nil && text != "":
		return text + ",[" + metav1.FormatLabelSelector(s) + "]"
	case s != nil:
		return "[" + metav1.FormatLabelSelector(s) + "]"
	case text == "" && p.Spec.Default != nil && !*p.Spec.Default:
		return "(by name only)"
	}
	return text
}

// InNamespace is the flag -n of commands about namespaced objects. The default is the namespace of the kubeconfig's
// context, as in kubectl.
type InNamespace struct {
	Name string
	// All is the flag -A of lists.
	All bool
}

// AddTo adds the flag --namespace to a command.
func (n *InNamespace) AddTo(s *app.App, cmd *cobra.Command, usage string) {
	cmd.Flags().StringVarP(&n.Name, "namespace", "n", "", usage)
	app.CompleteWith(cmd, "namespace", CompleteNamespaces(s))
}

// AddAll adds the flag --all-namespaces to a command.
func (n *InNamespace) AddAll(cmd *cobra.Command, usage string) {
	cmd.Flags().BoolVarP(&n.All, "all-namespaces", "A", false, usage)
}

// Complete sets the namespace of the context. With -A it stays empty.
func (n *InNamespace) Complete(s *app.App) error {
	if n.All {
		n.Name = ""
		return nil
	}
	if n.Name != "" {
		return nil
	}
	if _, err := s.Connect(); err != nil {
		return err
	}
	name, _, err := s.Flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return s.ConfigProblem(err)
	}
	n.Name = name
	return nil
}

// Key parses NAME or NAMESPACE/NAME, the form in addresses and messages.
func (n *InNamespace) Key(arg string) (types.NamespacedName, error) {
	namespace, name, both := strings.Cut(arg, "/")
	if !both {
		namespace, name = n.Name, arg
	}
	if len(validation.ValidateNamespaceName(namespace, false)) > 0 ||
		len(validation.NameIsDNSSubdomain(name, false)) > 0 {
		return types.NamespacedName{}, app.Usagef("%q is not NAME or NAMESPACE/NAME", arg)
	}
	return types.NamespacedName{Namespace: namespace, Name: name}, nil
}

// Keys parses several of them and drops duplicates.
func (n *InNamespace) Keys(args []string) (out []types.NamespacedName, err error) {
	for _, arg := range app.SortedOnce(args) {
		key, err := n.Key(arg)
		if err != nil {
			return nil, err
		}
		out = append(out, key)
	}
	return out, nil
}

// CheckNamespace refuses an invalid name of a namespace. The error is one of usage.
func CheckNamespace(word string) error {
	if problems := validation.ValidateNamespaceName(word, false); len(problems) > 0 {
		return app.Usagef("%q cannot be the name of a namespace: %s", word, strings.Join(problems, "; "))
	}
	return nil
}
