package rest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"unicode"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/claim"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

const (
	// Undefined marks the claim of a shared pool that was deleted through this API. The claim then behaves like one
	// that pods asked for: it keeps its addresses, and is deleted when it has none.
	Undefined = "networkextension.bkbcs.tencent.com/undefined"

	maxPoolSize = 65536
	maxPoolName = 253
	// maxAttempts bounds the number of tries to change a claim that others change at the same time.
	maxAttempts = 5
)

// GetPool answers GET /v1/pool/{name}. It reads the claim from the API server, so that it shows changes that another
// replica has just made.
func (s *Service) GetPool(ctx context.Context, name string) (out GetPoolResponse, err error) {
	o, err := s.pool(ctx, name)
	if err != nil {
		return out, err
	}
	p := SharedPool{Name: o.Spec.SharedName, Size: s.held(o), PreAllocateIP: o.Spec.Preallocate}
	if o.Spec.Replicas != nil {
		p.Size = int(*o.Spec.Replicas)
	}
	return GetPoolResponse{Response{Code: http.StatusOK}, p}, nil
}

// DeletePool answers DELETE /v1/pool/{name}. The pool's addresses stay with its claim: for its pods, for later pods,
// and for a new pool with the same name.
func (s *Service) DeletePool(ctx context.Context, name string) (out Response, err error) {
	err = s.again(ctx, name, func() error {
		o, err := s.pool(ctx, name)
		if err != nil {
			return err
		}
		return s.change(ctx, o, func(o *v1.BCSNetIPClaim) {
			o.Spec = shared(o.Spec.SharedName)
			metav1.SetMetaDataLabel(&o.ObjectMeta, claim.Managed, "true")
			metav1.SetMetaDataAnnotation(&o.ObjectMeta, Undefined, "true")
		})
	})
	return Response{Code: http.StatusOK}, err
}

// SetPool answers POST /v1/pool: it creates a shared pool or changes its size, and preallocates its addresses if the
// request asks for that. short is the reason why it did not get all of them; nil if it did.
func (s *Service) SetPool(
	ctx context.Context, in SetPoolRequest,
) (out UpdatePoolResponse, short *ipam.Refusal, err error) {
	name, err := in.parse()
	if err != nil {
		return out, nil, err
	}
	var o *v1.BCSNetIPClaim
	err = s.again(ctx, name, func() error {
		o, err = s.define(ctx, name, in)
		return err
	})
	if err != nil {
		return out, nil, err
	}
	out = UpdatePoolResponse{Response{Code: http.StatusOK}, s.held(o)}
	if !in.PreAllocateIP {
		return out, nil, nil
	}
	stock, err := s.Preallocate(ctx, o)
	if out.RealPoolSize = stock.Has; err != nil {
		return out, nil, failed(err, stock.Has, *in.Size, "taken")
	}
	if stock.Has < *in.Size {
		out.Response = Response{http.StatusAccepted, "No enough IPs"}
	}
	return out, stock.Why, nil
}

func (in SetPoolRequest) parse() (name string, err error) {
	switch name, err = poolName(in.Name); {
	case err != nil:
	case in.Size == nil:
		err = ipam.Refuse(ipam.ReasonMissingField, "size of pool %s is missing", name)
	case *in.Size < 0 || *in.Size > maxPoolSize:
		err = ipam.Refuse(ipam.ReasonBadRequest, "size %d of pool %s is not from 0 to %d", *in.Size, name, maxPoolSize)
	}
	return name, err
}

// poolName returns the name of a pool in the form of pods' annotations.
func poolName(text string) (string, error) {
	name := strings.TrimSpace(text)
	switch {
	case name == "":
		return "", ipam.Refuse(ipam.ReasonMissingField, "pool name is empty")
	case len(name) > maxPoolName, strings.ContainsFunc(name,
		func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar }):
		return "", ipam.Refuse(ipam.ReasonBadRequest,
			"pool name %.100q is not a printable text of at most %d bytes", name, maxPoolName)
	}
	return name, nil
}

// shared returns the claim of a shared pool as pods would create it.
func shared(name string) v1.BCSNetIPClaimSpec {
	return claim.Derive(workload.Policy{Shared: name, ForAll: true, Release: workload.ReleaseNever}, nil)
}

// define creates the claim of a pool, or changes the existing one to the request's values.
func (s *Service) define(ctx context.Context, name string, in SetPoolRequest) (*v1.BCSNetIPClaim, error) {
	size := int32(*in.Size)
	o, err := s.read(ctx, name)
	switch {
	case apierrors.IsNotFound(err):
		o = &v1.BCSNetIPClaim{Spec: shared(name)}
		o.Namespace, o.Name, o.Finalizers = s.Namespace, workload.SharedClaim(name), []string{v1.ClaimFinalizer}
		o.Spec.Replicas, o.Spec.Preallocate = &size, in.PreAllocateIP
		return o, s.Claims.Create(ctx, o)
	case err != nil:
		return nil, err
	case o.DeletionTimestamp != nil:
		return nil, ipam.Refuse(ipam.ReasonUnavailable, "claim %s/%s of pool %s is being deleted", o.Namespace, o.Name,
			name).
			WithHint("ask again when it is gone")
	case o.Spec.SharedName != name:
		return nil, ipam.Refuse(ipam.ReasonBadRequest,
			"pool %s cannot be: its claim would be %s/%s, which is there for something else", name, o.Namespace, o.Name)
	}
	return o, s.change(ctx, o, func(o *v1.BCSNetIPClaim) {
		o.Spec.Replicas, o.Spec.Preallocate = &size, in.PreAllocateIP
		delete(o.Labels, claim.Managed)
		delete(o.Annotations, Undefined)
	})
}

// pool returns the claim of a pool that was not deleted.
func (s *Service) pool(ctx context.Context, text string) (*v1.BCSNetIPClaim, error) {
	name, err := poolName(text)
	if err != nil {
		return nil, err
	}
	o, err := s.read(ctx, name)
	switch {
	case apierrors.IsNotFound(err), err == nil &&
		(o.DeletionTimestamp != nil || o.Annotations[Undefined] != "" || o.Spec.SharedName != name):
		return nil, ipam.Refuse(ipam.ReasonNotFound, "pool not found")
	case err != nil:
		return nil, serverError(name, err)
	}
	return o, nil
}

func (s *Service) read(ctx context.Context, name string) (*v1.BCSNetIPClaim, error) {
	var o v1.BCSNetIPClaim
	err := s.Live.Get(ctx, types.NamespacedName{Namespace: s.Namespace, Name: workload.SharedClaim(name)}, &o)
	return &o, err
}

// change changes a claim if it has not changed since it was read.
func (s *Service) change(ctx context.Context, o *v1.BCSNetIPClaim, do func(*v1.BCSNetIPClaim)) error {
	before := o.DeepCopy()
	do(o)
	return s.Claims.Patch(ctx, o, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

// again changes the claim of a pool, and retries after conflicts.
func (s *Service) again(ctx context.Context, name string, do func() error) error {
	for range maxAttempts {
		err := do()
		switch {
		case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err), apierrors.IsNotFound(err):
		case err != nil:
			return serverError(name, err)
		default:
			return nil
		}
		if ctx.Err() != nil {
			return serverError(name, ctx.Err())
		}
	}
	return ipam.Refuse(ipam.ReasonUnavailable,
		"server error: the claim of pool %s was changed by others %d times in a row", name,
		maxAttempts).WithHint("ask again")
}

// serverError returns the refusal for an error of the API server. A refusal is returned unchanged.
func serverError(name string, err error) error {
	if _, ok := errors.AsType[*ipam.Refusal](err); ok {
		return err
	}
	return ipam.Refuse(ipam.ReasonUnavailable, "server error: %v", fmt.Errorf("pool %s: %w", name, err)).
		WithHint("ask again")
}

// held returns the number of addresses of one family that a claim has.
func (s *Service) held(o *v1.BCSNetIPClaim) int {
	return s.Index.Leases.ClaimUsage(o.Namespace + "/" + o.Name).Most()
}
