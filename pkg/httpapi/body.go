package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// readBody reads a JSON body of at most so many bytes. The status goes with the error.
func readBody(w http.ResponseWriter, r *http.Request, most int64) ([]byte, int, error) {
	if ct := r.Header.Get("Content-Type"); ct != "" {
		media, params, err := mime.ParseMediaType(ct)
		charset, named := params["charset"]
		if err != nil || media != "application/json" || named && !strings.EqualFold(charset, "utf-8") {
			return nil, http.StatusUnsupportedMediaType, ipam.Refuse(ipam.ReasonBadRequest, "Content-Type %q is not application/json in UTF-8", clip(ct)).
				WithHint("send Content-Type: application/json, or none")
		}
	}
	var whole bytes.Buffer
	if r.ContentLength > 0 { // reading grows what is too small, and has most of it twice while it does
		whole.Grow(int(min(r.ContentLength, most)) + bytes.MinRead)
	}
	_, err := whole.ReadFrom(http.MaxBytesReader(w, r.Body, most))
	body := whole.Bytes()
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, http.StatusRequestEntityTooLarge, ipam.Refuse(ipam.ReasonBadRequest, "the body is larger than %d bytes", most)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, http.StatusRequestTimeout, ipam.Refuse(ipam.ReasonBadRequest, "the body did not arrive within %s", readTime)
	case err != nil:
		return nil, http.StatusBadRequest, ipam.Refuse(ipam.ReasonBadRequest, "the body ended early: %v", err)
	case len(bytes.TrimSpace(body)) == 0:
		return nil, http.StatusBadRequest, ipam.Refuse(ipam.ReasonBadRequest, "the body is empty; a JSON object is expected")
	case !json.Valid(body):
		return nil, http.StatusBadRequest, ipam.Refuse(ipam.ReasonBadRequest, "the body is not JSON")
	}
	return body, http.StatusOK, nil
}

// decode fills the fields of v, a pointer to a struct, from a body that is JSON. Fields that v lacks are
// ignored and logged.
func (s *Service) decode(r *http.Request, body []byte, v any) error {
	if err := unmarshal(body, v); err != nil {
		return err
	}
	strict := json.NewDecoder(bytes.NewReader(body))
	strict.DisallowUnknownFields()
	if strict.Decode(v) != nil {
		s.logUnknown(r, body, v)
	}
	return nil
}

// unmarshal fills the fields of v, a pointer to a struct, from a body that is JSON.
func unmarshal(body []byte, v any) error {
	if bytes.HasPrefix(bytes.TrimSpace(body), []byte("null")) { // Unmarshal takes it for an empty object
		return ipam.Refuse(ipam.ReasonBadRequest, "the body must be a JSON object, not null")
	}
	err := json.Unmarshal(body, v)
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.As(err, &wrong) && wrong.Field == "":
		return ipam.Refuse(ipam.ReasonBadRequest, "the body must be a JSON object, not a JSON %s", wrong.Value)
	case errors.As(err, &wrong):
		return ipam.Refuse(ipam.ReasonBadRequest, "field %s must be %s, not a JSON %s", wrong.Field, jsonWord(wrong.Type), wrong.Value)
	case err != nil:
		return ipam.Refuse(ipam.ReasonBadRequest, "the body cannot be read: %v", err)
	}
	return nil
}

// jsonWord is what JSON has for a type.
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

// logUnknown names the fields of a body that a struct lacks: as a line of its own the first time that a
// field is seen, later only for those who debug, because a plugin that sends it sends it always.
func (s *Service) logUnknown(r *http.Request, body []byte, v any) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(body, &all); err != nil {
		return // it was read before
	}
	var names []string
	known := jsonFields(v)
	for name := range all {
		if !slices.ContainsFunc(known, func(k string) bool { return strings.EqualFold(k, name) }) {
			names = append(names, clip(name))
		}
	}
	slices.Sort(names)
	log := s.Log.Debug
	if s.unknown.add(names) {
		log = s.Log.Info
	}
	log("the request has fields that are not known here; they are ignored", "fields", names, "method", r.Method, "path", clip(r.URL.Path), "request_id", idOf(r))
}

// jsonFields are the JSON names of the fields of the struct that v points to.
func jsonFields(v any) []string {
	var names []string
	t := reflect.TypeOf(v).Elem()
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}

// unknownFields remembers which fields have been logged, the first ones.
type unknownFields struct {
	mu   sync.Mutex
	seen map[string]struct{}
}

const maxUnknown = 64

// add says whether one of the names is new.
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
