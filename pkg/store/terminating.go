package store

import (
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// HintTerminating is what to do about a CRD that is being deleted.
const HintTerminating = "see what holds it: kubectl get crd -o wide; " +
	"when it has gone, install it again: bcsnetctl install --crds-only"

// IsTerminating reports whether the API server refused to make an object because its CRD is being deleted. It answers
// 403, as for a role that is missing, and differs in the message alone.
func IsTerminating(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(),
		"while custom resource definition is terminating")
}
