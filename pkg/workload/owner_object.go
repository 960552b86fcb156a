package workload

import "strings"

// OwnerKind is the kind of objects that hold addresses themselves, as it stands in the owners of their leases.
type OwnerKind string

// OwnerClusterAPI are the IPAddressClaims of Cluster API.
const OwnerClusterAPI OwnerKind = "capi"

// OwnerObject is an object of the API server that holds addresses. Leases name it as owner by KIND/NAMESPACE/NAME.
type OwnerObject struct {
	Kind            OwnerKind
	Namespace, Name string
}

// ParseOwner returns the object that the owner of a lease stands for; ok is false if it stands for none.
func ParseOwner(owner string) (o OwnerObject, ok bool) {
	kind, rest, _ := strings.Cut(owner, "/")
	namespace, name, ok := strings.Cut(rest, "/")
	o = OwnerObject{Kind: OwnerKind(kind), Namespace: namespace, Name: name}
	if !ok || o.Kind != OwnerClusterAPI || namespace == "" || name == "" || strings.Contains(name, "/") {
		return OwnerObject{}, false
	}
	return o, true
}

// String returns the owner that leases name.
func (o OwnerObject) String() string { return string(o.Kind) + "/" + o.Namespace + "/" + o.Name }

// What returns the kind of the object as the API server has it.
func (OwnerObject) What() string { return "IPAddressClaim" }
