package workload

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Whoever makes a pod writes its owner references, and the API server checks nothing of them but that they are not
// empty. A name such as ../../pods would lead to another path, and an invented kind would be remembered.

// nameable reports whether the API server can have an object of a name.
func nameable(name string) bool {
	return len(name) <= validation.DNS1123SubdomainMaxLength && len(content.IsPathSegmentName(name)) == 0
}

// servable reports whether the API server can have a kind.
func servable(gk schema.GroupKind) bool {
	return len(validation.IsDNS1035Label(strings.ToLower(gk.Kind))) == 0 &&
		(gk.Group == "" || len(validation.IsDNS1123Subdomain(gk.Group)) == 0)
}

// maxUnserved bounds how many kinds are remembered that the API server does not serve.
const maxUnserved = 1024

// forgetUnserved makes room for another kind that the API server does not serve. The one that was asked for longest ago
// goes. The caller has the lock.
func (o *Owners) forgetUnserved() {
	n, oldest := 0, (*kind)(nil)
	for _, k := range o.kinds {
		if !k.resource.Empty() {
			continue
		}
		if n++; oldest == nil || k.discovered.Before(oldest.discovered) {
			oldest = k
		}
	}
	if n >= maxUnserved {
		delete(o.kinds, schema.GroupKind{Group: oldest.group, Kind: oldest.kind})
	}
}
