package store

import (
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// HintTerminating is the hint for a CRD that is being deleted.
const HintTerminating = "see what holds it: kubectl get crd -o wide; " +
	"when it has gone, install it again: bcsnetctl install --crds-only"

// IsTerminating reports whether the API server refused to create an object because its CRD is being deleted. The answer
// is 403, as for a missing role, and differs only in its message.
func IsTerminating(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(),
		"while custom resource definition is terminating")
}
