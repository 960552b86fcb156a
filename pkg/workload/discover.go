package workload

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// recheck is the time after which the API server is asked again for a kind that was missing or had no scale.
const recheck = time.Minute

// discoveryTimeout bounds a discovery, which several requests may wait for.
const discoveryTimeout = 5 * time.Second

// kind returns a kind. The first request for a kind that is not part of Kubernetes asks the API server for that group,
// but only after a pod has such an owner.
func (o *Owners) kind(ctx context.Context, group, name string) (*kind, error) {
	gk := schema.GroupKind{Group: group, Kind: name}
	o.mu.RLock()
	k := o.kinds[gk]
	o.mu.RUnlock()
	if k != nil && (k.discovered.IsZero() || k.nature != foreign && !k.resource.Empty() ||
		o.now().Sub(k.discovered) < recheck) {
		return k, nil
	}
	return o.discovered(ctx, gk)
}

// discovered asks the API server for a kind, once for all concurrent callers.
func (o *Owners) discovered(ctx context.Context, gk schema.GroupKind) (*kind, error) {
	if !servable(gk) {
		return newKind(gk, o.now()), nil
	}
	answer := o.discoveries.DoChan(gk.String(), func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), discoveryTimeout)
		defer cancel()
		k, err := o.discover(ctx, gk)
		if err != nil {
			return nil, fmt.Errorf("asking the API server for the kind %s: %w", gk, err)
		}
		o.mu.Lock()
		defer o.mu.Unlock()
		if old := o.kinds[gk]; old != nil && old.stop != nil {
			old.stop()
		}
		if k.resource.Empty() && o.kinds[gk] == nil {
			o.forgetUnserved()
		}
		o.kinds[gk] = k
		if k.nature != foreign && !k.resource.Empty() {
			o.log.Info("a kind that pods have to do with is watched from now on", "resource", k.resource)
			o.watch(k)
		}
		return k, nil
	})
	select {
	case r := <-answer:
		if r.Err != nil {
			return nil, r.Err
		}
		return r.Val.(*kind), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// newKind returns a kind that counts as not served until it is discovered.
func newKind(gk schema.GroupKind, discovered time.Time) *kind {
	return &kind{
		kindInfo: kindInfo{group: gk.Group, kind: gk.Kind, prefix: prefixOf(gk.Group, gk.Kind)}, discovered: discovered,
	}
}

// discover finds the resource of a kind, and whether it has a scale. It uses the API server's preferred version, else
// the first version that has both.
func (o *Owners) discover(ctx context.Context, gk schema.GroupKind) (*kind, error) {
	k := newKind(gk, o.now())
	for _, i := range known() {
		if i.group == gk.Group && i.kind == gk.Kind {
			k.kindInfo = i
		}
	}
	versions, err := o.versions(ctx, gk.Group)
	if err != nil {
		return nil, err
	}
	for _, version := range versions {
		var list metav1.APIResourceList
		if err := o.get(ctx, groupPath(gk.Group)+"/"+version, &list); err != nil {
			if apierrors.IsNotFound(err) {
				continue // it was removed meanwhile
			}
			return nil, err
		}
		at := slices.IndexFunc(list.APIResources,
			func(r metav1.APIResource) bool { return r.Kind == gk.Kind && !isSubresource(r.Name) })
		if at < 0 {
			continue
		}
		found := list.APIResources[at]
		scaled := slices.ContainsFunc(list.APIResources,
			func(r metav1.APIResource) bool { return r.Name == found.Name+"/scale" })
		if k.resource.Empty() || scaled {
			k.namespaced = found.Namespaced
			k.resource = schema.GroupVersionResource{Group: gk.Group, Version: version, Resource: found.Name}
		}
		if scaled && k.nature == foreign {
			k.nature = app
		}
		if scaled {
			break
		}
	}
	return k, nil
}

func isSubresource(name string) bool { return slices.Contains([]byte(name), '/') }

// versions returns the versions of a group, the preferred one first; none if there is no such group.
func (o *Owners) versions(ctx context.Context, group string) (versions []string, err error) {
	if group == "" {
		return []string{"v1"}, nil
	}
	var g metav1.APIGroup
	switch err := o.get(ctx, groupPath(group), &g); {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, err
	}
	versions = append(versions, g.PreferredVersion.Version)
	for _, v := range g.Versions {
		if v.Version != g.PreferredVersion.Version {
			versions = append(versions, v.Version)
		}
	}
	return versions, nil
}

func groupPath(group string) string {
	if group == "" {
		return "/api"
	}
	return "/apis/" + group
}

func (o *Owners) get(ctx context.Context, path string, into any) error {
	body, err := o.rest.Get().AbsPath(path).SetHeader("Accept", "application/json").Do(ctx).Raw()
	if err != nil {
		return err
	}
	return json.Unmarshal(body, into)
}
