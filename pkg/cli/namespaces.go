package cli

import (
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
)

// inNamespace is the flag -n of commands about objects that are in a namespace: as kubectl does, they mean that of
// the kubeconfig's context when it is not given.
type inNamespace struct {
	name string
	// all is the flag -A, which lists have.
	all bool
}

func (n *inNamespace) addTo(s *app.App, cmd *cobra.Command, usage string) {
	cmd.Flags().StringVarP(&n.name, "namespace", "n", "", usage)
	app.CompleteWith(cmd, "namespace", completeNamespaces(s))
}

func (n *inNamespace) addAll(cmd *cobra.Command, usage string) {
	cmd.Flags().BoolVarP(&n.all, "all-namespaces", "A", false, usage)
}

// complete fills in the namespace of the context; it stays empty for all.
func (n *inNamespace) complete(s *app.App) error {
	if n.all {
		n.name = ""
		return nil
	}
	if n.name != "" {
		return nil
	}
	if _, err := s.Connect(); err != nil {
		return err
	}
	name, _, err := s.Flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return s.ConfigProblem(err)
	}
	n.name = name
	return nil
}

// key reads NAME, or NAMESPACE/NAME, which addresses and messages call an object by.
func (n *inNamespace) key(arg string) (types.NamespacedName, error) {
	namespace, name, both := strings.Cut(arg, "/")
	if !both {
		namespace, name = n.name, arg
	}
	if len(validation.ValidateNamespaceName(namespace, false)) > 0 || len(validation.NameIsDNSSubdomain(name, false)) > 0 {
		return types.NamespacedName{}, app.Usagef("%q is not NAME or NAMESPACE/NAME", arg)
	}
	return types.NamespacedName{Namespace: namespace, Name: name}, nil
}

// keys reads several of them, each once.
func (n *inNamespace) keys(args []string) (out []types.NamespacedName, err error) {
	for _, arg := range app.SortedOnce(args) {
		key, err := n.key(arg)
		if err != nil {
			return nil, err
		}
		out = append(out, key)
	}
	return out, nil
}
