package history

import (
	"bytes"
	"context"
	"slices"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/history"
)

// AuthorsPolicy is the name of the MutatingAdmissionPolicy, and of its binding, that sets v1.ChangedByAnnotation.
const AuthorsPolicy = "bcsnet-authors"

// checkEvery is the interval in which the existence of the policy is checked.
const checkEvery = time.Minute

// authors finds out who changed pools. The annotation counts only while the policy exists, because otherwise any user
// can write it. Without it, managedFields have the name that the client gave itself.
type authors struct {
	live    client.Reader
	checked time.Time
	stamps  bool
}

// fill adds the authors to the records of changes of pools.
func (a *authors) fill(ctx context.Context, records []history.Record, now time.Time) error {
	for i := range records {
		r := &records[i]
		if r.IP.IsValid() || r.What != history.WhatCreated && r.What != history.WhatChanged {
			continue
		}
		if err := a.checkPolicy(ctx, now); err != nil {
			return err
		}
		if a.stamps {
			continue
		}
		r.By = ""
		last, err := a.lastWrite(ctx, r.Pool, r.Changes...)
		if err != nil {
			return err
		}
		r.Program = last.Manager
	}
	return nil
}

// checkPolicy checks whether the policy exists, at most once per checkEvery.
func (a *authors) checkPolicy(ctx context.Context, now time.Time) error {
	if !a.checked.IsZero() && now.Sub(a.checked) < checkEvery {
		return nil
	}
	a.stamps = true
	for _, kind := range []string{"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"} {
		var o metav1.PartialObjectMetadata
		o.SetGroupVersionKind(admissionregistrationv1.SchemeGroupVersion.WithKind(kind))
		err := a.live.Get(ctx, client.ObjectKey{Name: AuthorsPolicy}, &o)
		switch {
		case apierrors.IsNotFound(err), meta.IsNoMatchError(err), apierrors.IsForbidden(err):
			a.stamps = false
		case err != nil:
			return err
		}
	}
	a.checked = now
	return nil
}

// lastWrite returns the last write of a pool's spec, by its managedFields; empty if the pool is gone. Their times are
// whole seconds: of several writers in one second, it chooses one that owns a changed field.
func (a *authors) lastWrite(
	ctx context.Context, pool string, changes ...history.FieldChange,
) (last metav1.ManagedFieldsEntry, err error) {
	var o metav1.PartialObjectMetadata
	o.SetGroupVersionKind(v1.GroupVersion.WithKind("BCSNetPool"))
	if err := a.live.Get(ctx, client.ObjectKey{Name: pool}, &o); err != nil {
		return last, client.IgnoreNotFound(err)
	}
	for _, f := range o.ManagedFields {
		switch {
		case f.Time == nil || !owns(f, "spec"):
		case last.Time == nil || last.Time.Before(f.Time):
			last = f
		case f.Time.Equal(last.Time) && slices.ContainsFunc(changes,
			func(c history.FieldChange) bool { return owns(f, c.Field) && !owns(last, c.Field) }):
			last = f
		}
	}
	return last, nil
}

// owns reports whether a writer owns a field of an object's spec, or the spec itself.
func owns(f metav1.ManagedFieldsEntry, field string) bool {
	return f.FieldsV1 != nil && bytes.Contains(f.FieldsV1.GetRawBytes(), []byte(`"f:`+field+`"`))
}

// missed returns records of pools that changed while nobody watched. They have the time of the spec's last write, but
// not the changed fields. known has the recorded generations.
func (a *authors) missed(
	ctx context.Context, cached client.Reader, version uint64, from time.Time, known map[string]int64,
) (records []history.Record, err error) {
	var pools v1.BCSNetPoolList
	if err := cached.List(ctx, &pools); err != nil {
		return nil, err
	}
	for _, p := range pools.Items {
		if parseVersion(p.ResourceVersion) <= version || p.Generation <= known[p.Name] {
			continue
		}
		last, err := a.lastWrite(ctx, p.Name)
		if err != nil {
			return nil, err
		}
		if last.Time == nil || last.Time.Time.Before(from) {
			continue
		}
		records = append(records, history.Record{Time: last.Time.UTC(), What: history.WhatChanged, Pool: p.Name,
			Generation: p.Generation, By: p.Annotations[v1.ChangedByAnnotation]})
	}
	return records, nil
}
