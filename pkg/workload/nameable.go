package workload

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
)

// The creator of a pod writes its owner references, and the API server only checks that their fields are not empty. A
// name such as ../../pods would lead to another path, and an invented kind would be remembered.

// nameable reports whether an object of the API server can have a name.
func nameable(name string) bool {
	return len(name) <= validation.DNS1123SubdomainMaxLength && len(content.IsPathSegmentName(name)) == 0
}

// servable reports whether the API server can have a kind.
func servable(gk schema.GroupKind) bool {
	return len(validation.IsDNS1035Label(strings.ToLower(gk.Kind))) == 0 &&
		(gk.Group == "" || len(validation.IsDNS1123Subdomain(gk.Group)) == 0)
}

// maxUnserved bounds the number of remembered kinds that the API server does not serve.
const maxUnserved = 1024

// forgetUnserved makes room for another kind that the API server does not serve. It removes the kind that was
// discovered least recently. The caller must hold the lock.
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
