package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// readBody reads a JSON body within its bounds. The status goes with the error.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, int, error) {
	if ct := r.Header.Get("Content-Type"); ct != "" {
		if media, _, err := mime.ParseMediaType(ct); err != nil || media != "application/json" {
			return nil, http.StatusUnsupportedMediaType, ipam.Refuse(ipam.ReasonBadRequest, "Content-Type %q is not application/json", ct)
		}
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, http.StatusRequestEntityTooLarge, ipam.Refuse(ipam.ReasonBadRequest, "the body is larger than %d bytes", maxBody)
	case err != nil:
		return nil, http.StatusBadRequest, ipam.Refuse(ipam.ReasonBadRequest, "the body ended early: %v", err)
	case !json.Valid(body):
		return nil, http.StatusBadRequest, ipam.Refuse(ipam.ReasonBadRequest, "the body is not JSON")
	}
	return body, 0, nil
}

// decode fills v from a body that is JSON. Unknown fields are ignored and logged.
func (s *Service) decode(r *http.Request, body []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	err := d.Decode(v)
	var wrong *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &wrong) && wrong.Field != "":
		return ipam.Refuse(ipam.ReasonBadRequest, "field %s must be a %s, not a JSON %s", wrong.Field, wrong.Type, wrong.Value)
	case errors.As(err, &wrong):
		return ipam.Refuse(ipam.ReasonBadRequest, "the body must be a JSON object, not a JSON %s", wrong.Value)
	default: // an unknown field; the rest has been read, unless a type error hides behind it
		s.Log.Info("request has a field that is not known", "error", err, "path", r.URL.Path, "request_id", idOf(r))
		if err := json.Unmarshal(body, v); err != nil {
			return s.decodeLenient(err)
		}
		return nil
	}
}

func (s *Service) decodeLenient(err error) error {
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		return ipam.Refuse(ipam.ReasonBadRequest, "field %s must be a %s, not a JSON %s", wrong.Field, wrong.Type, wrong.Value)
	}
	return ipam.Refuse(ipam.ReasonBadRequest, "the body cannot be read: %v", err)
}

// Bounds of what is stored; the schema of BCSNetIP has the same.
const (
	maxContainerID = 256
	maxIfName      = 15
	maxName        = 253
	maxNamespace   = 63
	maxUID         = 128
)

// bounded refuses fields that are too long or hold control characters.
func bounded(field, value string, limit int) error {
	if len(value) > limit {
		return ipam.Refuse(ipam.ReasonBadRequest, "%s is longer than %d characters", field, limit)
	}
	if strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\uFFFD' }) {
		return ipam.Refuse(ipam.ReasonBadRequest, "%s has characters that are not printable", field)
	}
	return nil
}

func parseHost(s string) (netip.Addr, error) {
	a, err := ipam.ParseAddr(s)
	if err != nil {
		return a, ipam.Refuse(ipam.ReasonBadRequest, "host %q is not an IP address", s)
	}
	return a, nil
}

func parseAddress(s string) (netip.Addr, error) {
	a, err := ipam.ParseAddr(s)
	if err != nil {
		return a, ipam.Refuse(ipam.ReasonBadAddress, "%q is not an IP address", s)
	}
	return a, nil
}

// parseAddresses reads ipAddr: nothing, one address, or one of each family, comma-separated.
func parseAddresses(s string) ([]netip.Addr, error) {
	if strings.TrimSpace(s) == "" {
		return nil, nil
	}
	var out []netip.Addr
	for part := range strings.SplitSeq(s, ",") {
		a, err := parseAddress(part)
		if err != nil {
			return nil, err
		}
		for _, o := range out {
			if o.Is4() == a.Is4() {
				return nil, ipam.Refuse(ipam.ReasonBadAddress, "ipAddr asks for %s and %s: one address of each family at most", o, a)
			}
		}
		out = append(out, a)
	}
	return out, nil
}

func parseStarted(s string) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return t, ipam.Refuse(ipam.ReasonBadRequest, "startedAt %q is not a time in RFC 3339", s)
	}
	return t, nil
}
