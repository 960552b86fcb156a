package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"mime"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// Bounds of the bodies of most requests.
const (
	readTime = 15 * time.Second
	maxBody  = 64 << 10
)

// bodies decodes the bodies of requests, and logs unknown fields.
type bodies struct {
	log     *slog.Logger
	unknown unknownFields
}

// checkType refuses a body with another Content-Type than JSON in UTF-8.
func checkType(r *http.Request) error {
	ct := r.Header.Get("Content-Type")
	if ct == "" {
		return nil
	}
	media, params, err := mime.ParseMediaType(ct)
	charset, named := params["charset"]
	if err != nil || media != "application/json" || named && !isUTF8(charset) {
		return ipam.Refuse(ipam.ReasonBadRequest, "Content-Type %q is not application/json in UTF-8", clip(ct)).
			WithHint("send Content-Type: application/json, or none")
	}
	return nil
}

// isUTF8 reports whether a charset is UTF-8, by its name or by the spelling that many clients use.
func isUTF8(charset string) bool {
	return strings.EqualFold(charset, "utf-8") || strings.EqualFold(charset, "utf8")
}

// readBody reads a JSON body of at most the given number of bytes. The buffer grows with the data that arrives,
// whatever length the request announces. It returns an HTTP status with the error.
func readBody(w http.ResponseWriter, r *http.Request, most int64) ([]byte, int, error) {
	if err := checkType(r); err != nil {
		return nil, http.StatusUnsupportedMediaType, err
	}
	var whole bytes.Buffer
	_, err := whole.ReadFrom(http.MaxBytesReader(w, r.Body, most))
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil, http.StatusRequestTimeout, ipam.Refuse(ipam.ReasonBadRequest, "the body did not arrive within %s",
			readTime)
	}
	status, err := checkBody(whole.Bytes(), most, err)
	return whole.Bytes(), status, err
}

// checkBody checks that a body is JSON. err is the error of reading it, if there was one. It returns an HTTP status
// with the error.
func checkBody(body []byte, most int64, err error) (int, error) {
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return http.StatusRequestEntityTooLarge, ipam.Refuse(ipam.ReasonBadRequest, "the body is larger than %d bytes",
			most)
	case err != nil:
		return http.StatusBadRequest, ipam.Refuse(ipam.ReasonBadRequest, "the body ended early: %v", err)
	case len(bytes.TrimSpace(body)) == 0:
		return http.StatusBadRequest, ipam.Refuse(ipam.ReasonBadRequest, "the body is empty; a JSON object is expected")
	case !json.Valid(body):
		return http.StatusBadRequest, ipam.Refuse(ipam.ReasonBadRequest, "the body is not JSON")
	}
	return http.StatusOK, nil
}

// decode fills the fields of v, a pointer to a struct, from a JSON body. Fields that v lacks are ignored and logged.
func (b *bodies) decode(r *http.Request, body []byte, v any) error {
	strict := json.NewDecoder(bytes.NewReader(body))
	strict.DisallowUnknownFields()
	if bytes.HasPrefix(bytes.TrimSpace(body), []byte("{")) && strict.Decode(v) == nil {
		return nil
	}
	reflect.ValueOf(v).Elem().SetZero()
	if err := unmarshal("", body, v); err != nil {
		return err
	}
	b.logUnknown(r, body, v)
	return nil
}

// unmarshal fills v from JSON: from a body, which is an object, or from the part of one at a path.
func unmarshal(path string, text []byte, v any) error {
	if path == "" && bytes.HasPrefix(bytes.TrimSpace(text), []byte("null")) { // Unmarshal treats it as an empty object
		return ipam.Refuse(ipam.ReasonBadRequest, "the body must be a JSON object, not null")
	}
	err := json.Unmarshal(text, v)
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.As(err, &wrong) && wrong.Field == "" && path == "":
		return ipam.Refuse(ipam.ReasonBadRequest, "the body must be a JSON object, not a JSON %s", wrong.Value)
	case errors.As(err, &wrong):
		at := strings.Trim(path+"."+wrong.Field, ".")
		return ipam.Refuse(ipam.ReasonBadRequest, "field %s must be %s, not a JSON %s", at, jsonWord(wrong.Type),
			wrong.Value)
	case err != nil:
		return ipam.Refuse(ipam.ReasonBadRequest, "the body cannot be read: %v", err)
	}
	return nil
}

// jsonWord returns the JSON name of a type.
func jsonWord(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Slice:
		return "an array"
	case reflect.Struct:
		return "an object"
	case reflect.Int:
		return "a whole number"
	case reflect.Bool:
		return "true or false"
	default:
		return "a " + t.String()
	}
}

// logUnknown logs the fields of a body that a struct lacks: in a line of its own the first time that a field is seen,
// later only at level debug, because a plugin that sends it sends it always.
func (b *bodies) logUnknown(r *http.Request, body []byte, v any) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(body, &all); err != nil {
		return // it has been decoded before
	}
	var names []string
	known := jsonFields(v)
	for name := range all {
		if !slices.ContainsFunc(known, func(k string) bool { return strings.EqualFold(k, name) }) {
			names = append(names, clip(name))
		}
	}
	slices.Sort(names)
	log := b.log.Debug
	if b.unknown.add(names) {
		log = b.log.Info
	}
	log("the request has fields that are not known here; they are ignored", "fields", names, "method", r.Method, "path",
		clip(r.URL.Path), "request_id", idOf(r))
}

// jsonFields returns the JSON names of the fields of a struct; v points to it.
func jsonFields(v any) []string {
	var names []string
	t := reflect.TypeOf(v).Elem()
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}

// unknownFields remembers a bounded number of fields that were logged.
type unknownFields struct {
	mu   sync.Mutex
	seen map[string]struct{}
}

const maxUnknown = 64

// add reports whether one of the names is new.
func (u *unknownFields) add(names []string) (isNew bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, n := range names {
		if _, ok := u.seen[n]; ok || len(u.seen) >= maxUnknown {
			continue
		}
		if u.seen == nil {
			u.seen = map[string]struct{}{}
		}
		u.seen[n], isNew = struct{}{}, true
	}
	return isNew
}
