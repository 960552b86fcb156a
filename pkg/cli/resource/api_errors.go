package resource

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// Hints that several errors share.
const (
	HintController = "see whether the controller runs: kubectl -n bcsnet-system get pods"
	HintInstall    = "install them: bcsnetctl install --crds-only"
)

// Explain translates errors of the API server and of the connection into Failures. It returns other errors unchanged.
func Explain(s *app.App, err error) error {
	var f *app.Failure
	var r *ipam.Refusal
	if err == nil || errors.As(err, &f) || errors.As(err, &r) || errors.Is(err, context.Canceled) {
		return err
	}
	if status, ok := errors.AsType[*apierrors.StatusError](err); ok {
		return explainStatus(status)
	}
	var sent *url.Error
	var timeout net.Error
	switch {
	case errors.As(err, &timeout) && timeout.Timeout():
		return (&app.Failure{
			Message: fmt.Sprintf("the API server %s did not answer in time", s.Config.Host), Code: app.ExitTimeout,
			Cause: err,
		}).
			WithHint("see whether it lives: kubectl get --raw /readyz; --request-timeout sets how long to wait")
	case errors.As(err, &sent):
		return (&app.Failure{
			Message: fmt.Sprintf("the API server %s cannot be reached: %v", s.Config.Host, sent.Err), Cause: err,
		}).
			WithHint("see whether it lives: kubectl get --raw /readyz; other clusters: kubectl config get-contexts")
	case errors.Is(err, store.ErrContended):
		return (&app.Failure{Message: "nothing was changed: " + err.Error(), Cause: err}).WithHint("run it again")
	}
	return err
}

// IsUnreachable reports whether a request got no answer, so that the next one will not get one, either.
func IsUnreachable(err error) bool {
	_, ok := errors.AsType[*url.Error](err)
	return ok
}

func explainStatus(err *apierrors.StatusError) *app.Failure {
	f := &app.Failure{Message: err.Error(), Cause: err}
	switch {
	case NoSuchResource(err):
		f.Message = "the cluster does not know the objects of bcsnet: their CRDs are not installed"
		f.Hint = HintInstall
	case store.IsTerminating(err):
		f.Reason, f.Hint = ipam.ReasonUnavailable, store.HintTerminating
	case apierrors.IsForbidden(err):
		f.Reason, f.Hint = ipam.ReasonForbidden, app.HintRights
	case apierrors.IsUnauthorized(err):
		f.Message = "the API server does not accept the credentials"
		f.Hint = "see which ones are used: kubectl config view --minify"
	case apierrors.IsInvalid(err) && err.ErrStatus.Details != nil && len(err.ErrStatus.Details.Causes) > 0:
		f.Reason = app.ReasonPoolInvalid
		if err.ErrStatus.Details.Kind == ClaimKind {
			f.Reason = app.ReasonClaimInvalid
		}
		f.Message = "the API server does not accept it: " + causes(err.ErrStatus.Details.Causes)
	case apierrors.IsBadRequest(err) && strings.Contains(f.Message, "field label not supported"):
		f.Code = app.ExitUsage
		f.Hint = "pools have the field spec.network; addresses have spec.pool and status.status, host, podNamespace, " +
			"podName, containerID, owner, claim"
	case apierrors.IsTimeout(err), apierrors.IsServerTimeout(err):
		f.Code = app.ExitTimeout
	}
	return f
}

// NoSuchResource reports whether the API server does not know the kind, rather than the object.
func NoSuchResource(err error) bool {
	return apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// causes joins the messages about an object's fields. It omits rules that the API server did not evaluate.
func causes(all []metav1.StatusCause) string {
	var out []string
	for _, c := range all {
		if c.Field == "" || c.Field == "<nil>" {
			continue
		}
		out = append(out, c.Field+": "+c.Message)
	}
	return strings.Join(out, "; ")
}
