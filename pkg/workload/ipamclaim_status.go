package workload

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// IPAMClaimFields are the status fields, other than the addresses, that the installed CRD of IPAMClaims has. Releases
// differ: some have none of them, and the pod has two forms.
type IPAMClaimFields struct {
	Conditions bool
	// Pod reports whether there is a field for the pod, PodText whether it is the name, not an object with the name.
	Pod, PodText bool
}

// seenFields are the fields with the time at which they were read.
type seenFields struct {
	IPAMClaimFields
	at time.Time
}

// fieldsRecheck is the time after which the CRD of IPAMClaims is read again, because it may have been replaced.
const fieldsRecheck = time.Minute

// IPAMClaimFields reads which fields the installed CRD has. An unreadable CRD counts as having none.
func (o *Owners) IPAMClaimFields(ctx context.Context) (IPAMClaimFields, error) {
	if seen := o.fields.Load(); seen != nil && o.now().Sub(seen.at) < fieldsRecheck {
		return seen.IPAMClaimFields, nil
	}
	var crd crdSchema
	path := "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/ipamclaims." + networksGroup
	switch err := o.get(ctx, path, &crd); {
	case apierrors.IsForbidden(err):
		if seen := o.fields.Load(); seen == nil {
			o.log.Warn("the CRD of IPAMClaims cannot be read: their status shows only addresses; see "+
				"config/ipamclaims", "error", err)
		}
	case err != nil:
		return IPAMClaimFields{}, fmt.Errorf("reading the CRD of IPAMClaims: %w", err)
	}
	k, err := o.ipamClaims(ctx)
	if err != nil {
		return IPAMClaimFields{}, err
	}
	seen := &seenFields{crd.fields(k.resource.Version), o.now()}
	o.fields.Store(seen)
	return seen.IPAMClaimFields, nil
}

// crdSchema is the relevant part of the CRD.
type crdSchema struct {
	Spec struct {
		Versions []struct {
			Name   string `json:"name"`
			Schema struct {
				OpenAPI struct {
					Properties struct {
						Status struct {
							Properties map[string]struct {
								Type string `json:"type"`
							} `json:"properties"`
						} `json:"status"`
					} `json:"properties"`
				} `json:"openAPIV3Schema"`
			} `json:"schema"`
		} `json:"versions"`
	} `json:"spec"`
}

func (s *crdSchema) fields(version string) (f IPAMClaimFields) {
	for _, v := range s.Spec.Versions {
		if v.Name != version {
			continue
		}
		status := v.Schema.OpenAPI.Properties.Status.Properties
		pod := status["ownerPod"].Type
		f.Conditions = status["conditions"].Type == "array"
		f.PodText, f.Pod = pod == "string", pod == "string" || pod == "object"
	}
	return f
}

// Known returns a status with only the fields of the CRD.
func (f IPAMClaimFields) Known(s IPAMClaimStatus) IPAMClaimStatus {
	if !f.Pod {
		s.OwnerPod = ""
	}
	if !f.Conditions {
		s.Conditions = nil
	}
	return s
}

// Equal reports whether two statuses are the same.
func (s IPAMClaimStatus) Equal(o IPAMClaimStatus) bool {
	return slices.Equal(s.IPs, o.IPs) && s.OwnerPod == o.OwnerPod &&
		slices.EqualFunc(s.Conditions, o.Conditions, func(a, b metav1.Condition) bool {
			same := a.LastTransitionTime.Equal(&b.LastTransitionTime)
			a.LastTransitionTime, b.LastTransitionTime = metav1.Time{}, metav1.Time{}
			return same && a == b
		})
}

// SetIPAMClaimStatus writes the status of an IPAMClaim at the version that the caller has seen, with the given fields.
// A conflict means that the IPAMClaim has changed since.
func (o *Owners) SetIPAMClaimStatus(
	ctx context.Context, c *IPAMClaim, next IPAMClaimStatus, fields IPAMClaimFields,
) error {
	k, err := o.ipamClaims(ctx)
	switch {
	case err != nil:
		return err
	case k.resource.Empty():
		return ErrKindGone
	}
	status := map[string]any{"ips": append([]string{}, next.IPs...)} // no null
	switch {
	case fields.PodText:
		status["ownerPod"] = next.OwnerPod
	case fields.Pod && next.OwnerPod == "":
		status["ownerPod"] = nil // null removes the field
	case fields.Pod:
		status["ownerPod"] = map[string]string{"name": next.OwnerPod}
	}
	if fields.Conditions {
		status["conditions"] = next.Conditions
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]string{"resourceVersion": c.Version, "uid": c.UID}, "status": status,
	})
	if err != nil {
		return err
	}
	_, err = o.dynamic.Resource(k.resource).Namespace(c.Namespace).
		Patch(ctx, c.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) { // the CRD has changed meanwhile
		o.fields.Store(nil)
	}
	return err
}
