package httpapi

import (
	"encoding/json"
	"net/http"
)

// subject has the fields of a request that decide who may send it.
type subject struct {
	Host      string `json:"host"`
	Namespace string `json:"podNamespace"`
}

// subjectOf reads the subject from path, query and body. What is malformed is refused by who reads all of it, by the
// same rules of JSON: nothing is decided about another host or namespace than this one.
func subjectOf(r *http.Request, op route, body []byte) (of subject) {
	switch {
	case op.hasBody:
		_ = json.Unmarshal(body, &of) // a malformed body is refused by who reads all of it
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
