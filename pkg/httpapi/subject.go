package httpapi

import (
	"encoding/json"
	"net/http"
)

// subject has the fields of a request that decide about the sender's permission.
type subject struct {
	Host      string `json:"host"`
	Namespace string `json:"podNamespace"`
}

// subjectOf reads the subject from path, query and body. Malformed input is refused later by the full parser, which
// uses the same JSON rules, so that the decision concerns exactly this host and namespace.
func subjectOf(r *http.Request, op route, body []byte) (of subject) {
	switch {
	case op.hasBody:
		_ = json.Unmarshal(body, &of) // the full parser refuses a malformed body
	case r.PathValue("host") != "":
		of.Host = r.PathValue("host")
	case r.PathValue("namespace") != "":
		of.Namespace = r.PathValue("namespace")
	default:
		q := r.URL.Query()
		of.Host, of.Namespace = q.Get("host"), q.Get("podNamespace")
	}
	return of
}
