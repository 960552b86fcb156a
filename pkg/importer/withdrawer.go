package importer

import (
	"go4.org/netipx"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/bcsnet/bcsnet/api/v1"
)

// Withdrawer knows how another system is told, while it runs, not to allocate certain addresses. It reads and changes
// copies of that system's objects; the caller stores them, with the resourceVersion that was read.
type Withdrawer interface {
	// Kind is that of the objects that say it.
	Kind() schema.GroupVersionResource
	// New returns an object that says it for a pool. It is nil if objects of the other system say it.
	New(p *v1.BCSNetPool) *unstructured.Unstructured
	// Carries reports whether an object says it for a pool.
	Carries(o *unstructured.Unstructured, p *v1.BCSNetPool) bool
	// Problem returns why an object leaves open what is withdrawn for a pool; empty if it does not. No address may
	// change the system then.
	Problem(o *unstructured.Unstructured, p *v1.BCSNetPool) string
	// Withdrawn returns the addresses that an object withdraws for us, as its fields and our annotation agree.
	Withdrawn(o *unstructured.Unstructured) (*netipx.IPSet, error)
	// Set has an object withdraw exactly these addresses for us, beside what it says for others.
	Set(o *unstructured.Unstructured, withdrawn *netipx.IPSet) error
	// Spent reports whether an object that New made says nothing any more, for us or for others.
	Spent(o *unstructured.Unstructured) bool
	// InUse reports whether an address can be withdrawn that a pod has.
	InUse() bool
	// ByName reports whether any pod gets the address again that an earlier pod of its name had, withdrawn or not.
	ByName() bool
}
