package workload

import (
	"maps"
	"strings"
	"sync"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// object is the stored part of an object that may own pods: about 200 bytes of 5,000 bytes of metadata.
type object struct {
	uid         string
	controller  Owner
	annotations map[string]string
	generation  int64
	// ipamClaim is the whole object if it is an IPAMClaim; nil for any other.
	ipamClaim *IPAMClaim
}

// objectOf reads metadata.
func objectOf(m metav1.Object) *object {
	c := controllerOf(m)
	return &object{
		uid: string(m.GetUID()), annotations: understood(m.GetAnnotations()), generation: m.GetGeneration(),
		controller: Owner{Group: shared(c.Group), Kind: shared(c.Kind), Name: shared(c.Name), UID: shared(c.UID)},
	}
}

// wants reports whether the needs of an object may have changed: the number of pods, the addresses, or the status of an
// IPAMClaim. Either may be nil for an object that does not exist.
func (o *object) wants(before *object) bool {
	return o == nil || o.ipamClaim != nil || before == nil || o.generation != before.generation ||
		o.uid != before.uid || !maps.Equal(o.annotations, before.annotations)
}

// controllerOf returns the owner that an object's references mark as its controller, in any position.
func controllerOf(m metav1.Object) Owner {
	c := metav1.GetControllerOfNoCopy(m)
	if c == nil {
		return Owner{}
	}
	return Owner{Group: groupOf(c.APIVersion), Kind: c.Kind, Name: c.Name, UID: string(c.UID)}
}

// groupOf returns the group of an apiVersion, without an allocation.
func groupOf(apiVersion string) string {
	if group, _, ok := strings.Cut(apiVersion, "/"); ok {
		return group
	}
	return ""
}

// shared returns a string equal to s whose memory is shared: many objects name the same owner.
func shared(s string) string { return unique.Make(s).Value() }

// objects has the objects of one kind. A Reflector fills it; their full metadata is not kept.
type objects struct {
	mu sync.RWMutex
	by map[types.NamespacedName]*object
	// changed is called, outside the lock, for objects whose needs may have changed; may be nil.
	changed func(namespace, name string)
}

var _ cache.ReflectorStore = (*objects)(nil)

func (s *objects) get(namespace, name string) *object {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.by[types.NamespacedName{Namespace: namespace, Name: name}]
}

// sharedReference returns an owner reference whose strings are shared.
func sharedReference(c *metav1.OwnerReference) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: shared(c.APIVersion), Kind: shared(c.Kind), Name: shared(c.Name),
		UID: types.UID(shared(string(c.UID))), Controller: new(true),
	}
}

// Add stores an object.
func (s *objects) Add(o any) error { return s.Update(o) }

// Update stores an object.
func (s *objects) Update(o any) error {
	s.change(func() []types.NamespacedName { return s.store(o) })
	return nil
}

// change changes the objects under the lock, and calls changed for the objects that do returns.
func (s *objects) change(do func() []types.NamespacedName) {
	s.mu.Lock()
	changed := do()
	s.mu.Unlock()
	if s.changed == nil {
		return
	}
	for _, n := range changed {
		s.changed(n.Namespace, n.Name)
	}
}

// store stores an object, and returns its name if its needs may have changed.
func (s *objects) store(o any) []types.NamespacedName {
	m, ok := o.(metav1.Object)
	if !ok {
		return nil
	}
	key, next := types.NamespacedName{Namespace: shared(m.GetNamespace()), Name: m.GetName()}, objectOf(m)
	if whole, ok := o.(*unstructured.Unstructured); ok {
		next.ipamClaim = ipamClaimOf(whole)
	}
	before := s.by[key]
	if s.by[key] = next; !next.wants(before) {
		return nil
	}
	return []types.NamespacedName{key}
}

// Delete forgets an object.
func (s *objects) Delete(o any) error {
	m, ok := o.(metav1.Object)
	if !ok {
		return nil
	}
	key := types.NamespacedName{Namespace: m.GetNamespace(), Name: m.GetName()}
	s.change(func() []types.NamespacedName { delete(s.by, key); return []types.NamespacedName{key} })
	return nil
}

// Replace stores these objects and removes all others.
func (s *objects) Replace(all []any, _ string) error {
	s.change(func() (changed []types.NamespacedName) {
		before := s.by
		s.by = make(map[types.NamespacedName]*object, len(all))
		for _, o := range all {
			s.store(o)
		}
		for key, was := range before {
			if s.by[key].wants(was) {
				changed = append(changed, key)
			}
		}
		for key := range s.by {
			if before[key] == nil {
				changed = append(changed, key)
			}
		}
		return changed
	})
	return nil
}

// Resync does nothing, because unchanged objects cause no events.
func (s *objects) Resync() error { return nil }
