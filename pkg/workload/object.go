package workload

import (
	"strings"
	"sync"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// object is what is kept of an object that may own pods: about 200 bytes for 5,000 bytes of metadata.
type object struct {
	uid         string
	controller  Owner
	annotations map[string]string
}

// objectOf reads metadata.
func objectOf(m metav1.Object) *object {
	c := controllerOf(m)
	return &object{
		uid: string(m.GetUID()), annotations: understood(m.GetAnnotations()),
		controller: Owner{Group: shared(c.Group), Kind: shared(c.Kind), Name: shared(c.Name), UID: shared(c.UID)},
	}
}

// controllerOf is the owner that an object's reference marks as its controller; the order says nothing.
func controllerOf(m metav1.Object) Owner {
	c := metav1.GetControllerOfNoCopy(m)
	if c == nil {
		return Owner{}
	}
	return Owner{Group: groupOf(c.APIVersion), Kind: c.Kind, Name: c.Name, UID: string(c.UID)}
}

// groupOf is the group of an apiVersion, without an allocation.
func groupOf(apiVersion string) string {
	if group, _, ok := strings.Cut(apiVersion, "/"); ok {
		return group
	}
	return ""
}

// shared is the same string in memory that others share: many objects name the same owner.
func shared(s string) string { return unique.Make(s).Value() }

// objects are those of one kind. A Reflector fills them; nothing keeps the metadata itself.
type objects struct {
	mu sync.RWMutex
	by map[types.NamespacedName]*object
}

var _ cache.ReflectorStore = (*objects)(nil)

func (s *objects) get(namespace, name string) *object {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.by[types.NamespacedName{Namespace: namespace, Name: name}]
}

// sharedReference is an owner reference whose strings are shared.
func sharedReference(c *metav1.OwnerReference) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: shared(c.APIVersion), Kind: shared(c.Kind), Name: shared(c.Name),
		UID: types.UID(shared(string(c.UID))), Controller: new(true),
	}
}

// Add keeps an object.
func (s *objects) Add(o any) error { return s.Update(o) }

// Update keeps an object.
func (s *objects) Update(o any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keep(o)
	return nil
}

func (s *objects) keep(o any) {
	if m, ok := o.(*metav1.PartialObjectMetadata); ok {
		s.by[types.NamespacedName{Namespace: shared(m.Namespace), Name: m.Name}] = objectOf(m)
	}
}

// Delete forgets an object.
func (s *objects) Delete(o any) error {
	if m, ok := o.(*metav1.PartialObjectMetadata); ok {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.by, types.NamespacedName{Namespace: m.Namespace, Name: m.Name})
	}
	return nil
}

// Replace keeps these objects and no others.
func (s *objects) Replace(all []any, _ string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.by = make(map[types.NamespacedName]*object, len(all))
	for _, o := range all {
		s.keep(o)
	}
	return nil
}

// Resync does nothing: nobody is told of changes.
func (s *objects) Resync() error { return nil }
