// Package informers delivers the objects of the cache to components that keep a digest of them. It is independent of
// the kind of object.
package informers

import (
	"context"
	"maps"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Watch calls the handler for all objects of a kind. synced reports whether it was called for all initial objects.
func Watch(
	ctx context.Context, c cache.Cache, o client.Object, h toolscache.ResourceEventHandler,
) (synced func() bool, err error) {
	informer, err := c.GetInformer(ctx, o, cache.BlockUntilSynced(false))
	if err != nil {
		return nil, err
	}
	registration, err := informer.AddEventHandler(h)
	if err != nil {
		return nil, err
	}
	return registration.HasSynced, nil
}

// Handler returns a handler that calls set for existing objects and remove for deleted ones.
func Handler[T any](set, remove func(T)) toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { set(o.(T)) },
		UpdateFunc: func(_, o any) { set(o.(T)) },
		DeleteFunc: func(o any) {
			if unknown, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
				o = unknown.Obj
			}
			if t, ok := o.(T); ok {
				remove(t)
			}
		},
	}
}

// SpecHandler returns a handler that calls look for objects that are created or deleted, and for both states of an
// object whose spec, annotations or labels change. It ignores changes of the status, which are frequent, unless matters
// returns true; matters may be nil.
func SpecHandler[T client.Object](look func(T), matters func(T) bool) toolscache.ResourceEventHandler {
	every := Handler(look, look)
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(o any) { every.OnAdd(o, false) },
		UpdateFunc: func(old, o any) {
			before, after := old.(T), o.(T)
			if before.GetGeneration() != after.GetGeneration() || matters != nil && matters(after) ||
				!maps.Equal(before.GetAnnotations(), after.GetAnnotations()) ||
				!maps.Equal(before.GetLabels(), after.GetLabels()) {
				look(before)
				look(after)
			}
		},
		DeleteFunc: every.OnDelete,
	}
}
