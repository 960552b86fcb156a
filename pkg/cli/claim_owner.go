package cli

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/restmapper"
)

// findKind finds group, version and kind of the owner that was typed, as kubectl would.
func (v *claimCreate) findKind() error {
	kind, err := v.kindOf(v.ownerResource)
	if err != nil {
		return err
	}
	v.object.Spec.Owner.APIVersion, v.object.Spec.Owner.Kind = kind.GroupVersion().String(), kind.Kind
	return nil
}

// kindOf is the kind that the API server knows by a word: a kind or resource, with its group or without, or its
// short name.
func (s *session) kindOf(word string) (schema.GroupVersionKind, error) {
	cfg, err := s.connect()
	if err != nil {
		return schema.GroupVersionKind{}, err
	}
	d, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return schema.GroupVersionKind{}, s.configProblem(err)
	}
	cached := memory.NewMemCacheClient(d)
	mapper := restmapper.NewShortcutExpander(restmapper.NewDeferredDiscoveryRESTMapper(cached), cached, func(string) {})
	full, resource := schema.ParseResourceArg(strings.ToLower(word))
	if full != nil {
		if kind, err := mapper.KindFor(*full); err == nil {
			return kind, nil
		}
	}
	kind, err := mapper.KindFor(resource.WithVersion(""))
	if meta.IsNoMatchError(err) {
		return kind, refuse(reasonKindNotFound, "the API server knows no kind %s", word).withHint("see what it knows: kubectl api-resources")
	}
	return kind, s.explain(err)
}
