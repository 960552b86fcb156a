package history

import (
	"bytes"
	"context"
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

// checkEvery is how often it is asked whether the policy is there.
const checkEvery = time.Minute

// authors finds out who changed pools. The annotation counts while the policy is there: otherwise anybody can write it.
// Without it, managedFields say what the client called itself.
type authors struct {
	live    client.Reader
	checked time.Time
	stamps  bool
}

// fill completes the records of changes of pools.
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
		program, err := a.program(ctx, r.Pool)
		if err != nil {
			return err
		}
		r.Program = program
	}
	return nil
}

// checkPolicy asks whether the policy is there, unless that was asked lately.
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

// program returns what the client called itself that wrote the spec of a pool last; empty for a pool that has gone.
func (a *authors) program(ctx context.Context, pool string) (string, error) {
	last, err := a.lastWrite(ctx, pool)
	return last.Manager, err
}

// lastWrite returns who wrote the spec of a pool last, by its managedFields.
func (a *authors) lastWrite(ctx context.Context, pool string) (last metav1.ManagedFieldsEntry, err error) {
	var o metav1.PartialObjectMetadata
	o.SetGroupVersionKind(v1.GroupVersion.WithKind("BCSNetPool"))
	if err := a.live.Get(ctx, client.ObjectKey{Name: pool}, &o); err != nil {
		return last, client.IgnoreNotFound(err)
	}
	for _, f := range o.ManagedFields {
		if f.Time != nil && f.FieldsV1 != nil && bytes.Contains(f.FieldsV1.GetRawBytes(), []byte(`"f:spec"`)) &&
			(last.Time == nil || !f.Time.Before(last.Time)) {
			last = f
		}
	}
	return last, nil
}

// missed returns records of the changes of pools while nobody watched: when the spec was written last, and not what
// changed. known are the generations that are recorded.
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
