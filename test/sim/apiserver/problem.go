package apiserver

import (
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// problem is the reason why a request is refused. It uses the real API server's words if somebody parses them.
type problem struct{ metav1.Status }

func (p *problem) body() []byte {
	if p.Reason == unserved {
		return []byte("404 page not found\n")
	}
	p.TypeMeta, p.Status.Status = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, metav1.StatusFailure
	return encode(p.Status)
}

// unserved is the reason for a path that nobody serves. The real answer is a page, not a Status.
const unserved = "Unserved"

func refusal(code int, reason metav1.StatusReason, format string, args ...any) *problem {
	return &problem{metav1.Status{Code: int32(code), Reason: reason, Message: fmt.Sprintf(format, args...)}}
}

// TooMany rejects a request for some seconds without reading it, as priority and fairness do.
func (s *Server) TooMany(r *http.Request, seconds int) *http.Response {
	p := refusal(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests,
		"the server has received too many requests and has asked us to try again later")
	p.Details = &metav1.StatusDetails{RetryAfterSeconds: int32(seconds)}
	return s.refuse(r, p)
}

func badRequest(format string, args ...any) *problem {
	return refusal(http.StatusBadRequest, metav1.StatusReasonBadRequest, format, args...)
}

func (t target) notFound() *problem {
	p := refusal(http.StatusNotFound, metav1.StatusReasonNotFound, "%s %q not found", t.kind.qualified(), t.name)
	p.Details = &metav1.StatusDetails{Name: t.name, Group: t.kind.group, Kind: t.kind.resource}
	return p
}

func (t target) exists() *problem {
	p := refusal(http.StatusConflict, metav1.StatusReasonAlreadyExists, "%s %q already exists", t.kind.qualified(),
		t.name)
	p.Details = &metav1.StatusDetails{Name: t.name, Group: t.kind.group, Kind: t.kind.resource}
	return p
}

func (t target) conflict(why string) *problem {
	p := refusal(http.StatusConflict, metav1.StatusReasonConflict, "Operation cannot be fulfilled on %s %q: %s",
		t.kind.qualified(), t.name, why)
	p.Details = &metav1.StatusDetails{Name: t.name, Group: t.kind.group, Kind: t.kind.resource}
	return p
}

const modified = "the object has been modified; please apply your changes to the latest version and try again"

func precondition(what, want, got string) string {
	return fmt.Sprintf("Precondition failed: %s in precondition: %s, %s in object meta: %s", what, want, what, got)
}

// complaint is one error in an object.
type complaint struct{ reason, field, message string }

func (t target) invalid(all []complaint) *problem {
	p := refusal(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, "%s.%s %q is invalid: %s: %s", t.kind.kind,
		t.kind.group, t.name, all[0].field, all[0].message)
	p.Details = &metav1.StatusDetails{Name: t.name, Group: t.kind.group, Kind: t.kind.kind}
	for _, c := range all {
		p.Details.Causes = append(p.Details.Causes,
			metav1.StatusCause{Type: metav1.CauseType(c.reason), Field: c.field, Message: c.message})
	}
	return p
}

func expired(oldest, asked uint64) *problem {
	return refusal(http.StatusGone, metav1.StatusReasonExpired, "too old resource version: %d (%d)", asked, oldest)
}

func tooLarge(asked, present uint64) *problem {
	p := refusal(http.StatusGatewayTimeout, metav1.StatusReasonTimeout, "Too large resource version: %d, current: %d",
		asked, present)
	p.Details = &metav1.StatusDetails{
		RetryAfterSeconds: 1, Causes: []metav1.StatusCause{{
			Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version",
		}},
	}
	return p
}
