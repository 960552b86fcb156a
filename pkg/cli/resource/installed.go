package resource

import (
	"context"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"

	"github.com/bcsnet/bcsnet/pkg/doctor"
	"github.com/bcsnet/bcsnet/pkg/replica"
)

// Definitions compares the CRDs of this program with those of the cluster.
func Definitions(ctx context.Context, c dynamic.Interface) ([]doctor.CRD, error) {
	ours, err := Render("crd")
	if err != nil {
		return nil, err
	}
	var out []doctor.CRD
	for _, want := range ours {
		stored, err := c.Resource(CRDResource()).Get(ctx, want.GetName(), metav1.GetOptions{})
		crd := doctor.CRD{Name: want.GetName(), Missing: apierrors.IsNotFound(err)}
		switch {
		case err == nil:
			crd.Difference = doctor.Difference(want.Object["spec"], stored.Object["spec"])
			crd.NotServed = doctor.NotServed(want.Object, stored.Object)
		case !crd.Missing:
			return nil, err
		}
		out = append(out, crd)
	}
	return out, nil
}

// LeaderLease returns the spec of the controllers' Lease; empty if none has led yet.
func LeaderLease(ctx context.Context, c dynamic.Interface) (coordinationv1.LeaseSpec, error) {
	var lease coordinationv1.Lease
	stored, err := c.Resource(coordinationv1.SchemeGroupVersion.WithResource("leases")).
		Namespace(SystemNamespace).Get(ctx, ControllerName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return lease.Spec, nil
	}
	if err == nil {
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(stored.Object, &lease)
	}
	return lease.Spec, err
}

// LeaderOf returns the leader and its lease duration; the zero value if none has led yet.
func LeaderOf(lease coordinationv1.LeaseSpec) (c doctor.Controller) {
	if lease.HolderIdentity != nil && lease.RenewTime != nil && lease.LeaseDurationSeconds != nil {
		c.Leader, c.Renewed, c.Term = replica.Parse(*lease.HolderIdentity).Name, lease.RenewTime.Time,
			time.Duration(*lease.LeaseDurationSeconds)*time.Second
	}
	return c
}
