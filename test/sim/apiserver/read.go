package apiserver

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func (s *Server) get(t target) (code int, answer []byte, p *problem) {
	o := t.kind.objects[t.key()]
	if o == nil {
		return 0, nil, t.notFound()
	}
	return http.StatusOK, o.as(t.partial), nil
}

// page is where a list goes on.
type page struct {
	Version uint64 `json:"rv"`
	After   string `json:"start"`
}

// list answers with the objects of one version, sorted by name.
func (s *Server) list(t target) (code int, answer []byte, p *problem) {
	match, p := t.selects()
	if p != nil {
		return 0, nil, p
	}
	asked, _ := strconv.ParseUint(t.query.Get("resourceVersion"), 10, 64)
	at := page{Version: s.version}
	switch exact := t.query.Get("resourceVersionMatch") == string(metav1.ResourceVersionMatchExact); {
	case t.query.Get("continue") != "":
		text, err := base64.RawURLEncoding.DecodeString(t.query.Get("continue"))
		if err != nil || json.Unmarshal(text, &at) != nil {
			return 0, nil, badRequest("continue key is not valid")
		}
	case asked > s.version:
		return 0, nil, tooLarge(asked, s.version)
	case exact:
		at.Version = asked
	}
	if at.Version < s.first {
		return 0, nil, expired(s.first, at.Version)
	}
	all := s.at(t.kind, at.Version)
	limit, _ := strconv.Atoi(t.query.Get("limit"))
	var out bytes.Buffer
	var next string
	n := 0
	for _, key := range slices.Sorted(maps.Keys(all)) {
		o := all[key]
		if at.After != "" && key <= at.After || t.namespace != "" && !strings.HasPrefix(key, t.namespace+"/") {
			continue
		}
		if limit > 0 && n == limit { // even if the rest does not match
			next = base64.RawURLEncoding.EncodeToString(encode(at))
			break
		}
		if !match(o) {
			continue
		}
		if n > 0 {
			out.WriteByte(',')
		}
		out.Write(o.as(t.partial))
		at.After = key
		n++
	}
	kind, version := t.kind.kind+"List", t.kind.apiVersion()
	if t.partial {
		kind, version = "PartialObjectMetadataList", "meta.k8s.io/v1"
	}
	m := map[string]any{"resourceVersion": strconv.FormatUint(at.Version, 10)}
	if next != "" {
		m["continue"] = next
	}
	return http.StatusOK, fmt.Appendf(nil, `{"kind":%q,"apiVersion":%q,"metadata":%s,"items":[%s]}`, kind, version,
		encode(m), out.Bytes()), nil
}

// at returns the objects of a kind at a version.
func (s *Server) at(k *kind, version uint64) map[string]*object {
	if version >= s.version {
		return k.objects
	}
	all := maps.Clone(k.objects)
	for _, e := range slices.Backward(s.events) {
		switch {
		case e.version <= version:
			return all
		case e.kind != k:
		case e.now != nil:
			delete(all, e.now.key)
			if e.old != nil {
				all[e.old.key] = e.old
			}
		default:
			all[e.old.key] = e.old
		}
	}
	return all
}

// Compact forgets all but the last keep versions. Lists and watches from earlier versions then have expired.
func (s *Server) Compact(keep uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.version < s.first+keep {
		return
	}
	s.first = s.version - keep
	at := slices.IndexFunc(s.events, func(e event) bool { return e.version > s.first })
	if at < 0 {
		at = len(s.events)
	}
	s.events = slices.Clone(s.events[at:])
}
