package claim

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/restmapper"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
)

// findKind resolves the kind of the typed owner as kubectl does.
func (v *claimCreate) findKind() error {
	kind, err := kindNamed(v.App, v.ownerResource)
	if err != nil {
		return err
	}
	v.object.Spec.Owner.APIVersion, v.object.Spec.Owner.Kind = kind.GroupVersion().String(), kind.Kind
	return nil
}

// kindNamed returns the kind that the API server knows by a word: a kind, resource or short name, with or without its
// group.
func kindNamed(s *app.App, word string) (schema.GroupVersionKind, error) {
	cfg, err := s.Connect()
	if err != nil {
		return schema.GroupVersionKind{}, err
	}
	d, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return schema.GroupVersionKind{}, s.ConfigProblem(err)
	}
	cached := memory.NewMemCacheClient(d)
	mapper := restmapper.NewShortcutExpander(restmapper.NewDeferredDiscoveryRESTMapper(cached), cached, func(string) {})
	full, group := schema.ParseResourceArg(strings.ToLower(word))
	if full != nil {
		if kind, err := mapper.KindFor(*full); err == nil {
			return kind, nil
		}
	}
	kind, err := mapper.KindFor(group.WithVersion(""))
	if meta.IsNoMatchError(err) {
		return kind, app.Refuse(app.ReasonKindNotFound, "the API server knows no kind %s", word).
			WithHint("see what it knows: kubectl api-resources")
	}
	return kind, resource.Explain(s, err)
}
