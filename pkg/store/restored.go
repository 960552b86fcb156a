package store

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// causeRestored marks the answer to a watch from a version that the API server has not reached.
const causeRestored metav1.CauseType = "StoreRestored"

// NoticeRestore has every watch that goes through a transport begin with a look at the version that the API
// server has: one that is behind what the watcher has seen is that of a store which was put back to an older
// state. Such a server would accept the watch and tell nothing until its versions have caught up. The watcher
// is told that its version has expired, and lists. The look is a consistent read: a server that merely lags does not
// pass for one whose store was put back.
func NoticeRestore(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		q := r.URL.Query()
		from := parseVersion(q.Get("resourceVersion"))
		if !slices.Contains([]string{"true", "1"}, q.Get("watch")) || q.Get("sendInitialEvents") != "" || from == 0 {
			return next.RoundTrip(r)
		}
		present, err := presentVersion(next, r)
		switch {
		case err != nil:
			return nil, err
		case present != 0 && present < from:
			return expired(r), nil
		}
		return next.RoundTrip(r)
	})
}

// presentVersion is the version of a list of what a watch is about; 0 when the API server does not give one.
func presentVersion(next http.RoundTripper, watch *http.Request) (uint64, error) {
	r := watch.Clone(watch.Context())
	r.URL.RawQuery = url.Values{"limit": {"1"}}.Encode()
	r.Header.Set("Accept", "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json")
	resp, err := next.RoundTrip(r)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		_, _ = io.Copy(io.Discard, resp.Body) // the watch itself will say what is wrong
		return 0, nil
	}
	var list metav1.PartialObjectMetadataList
	if err := json.NewDecoder(resp.Body).Decode(&list); err != nil {
		return 0, err
	}
	return parseVersion(list.ResourceVersion), nil
}

// expired is the answer of an API server that no longer knows a version.
func expired(r *http.Request) *http.Response {
	return respond(r, metav1.Status{
		Code: http.StatusGone, Reason: metav1.StatusReasonExpired,
		Message: "the store was put back to an older version than the watch has seen",
		Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: causeRestored}}},
	})
}

// respond is an answer that refuses a request in the API server's place.
func respond(r *http.Request, why metav1.Status) *http.Response {
	why.TypeMeta, why.Status = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, metav1.StatusFailure
	body, _ := json.Marshal(why) // cannot fail
	return &http.Response{
		Status:     fmt.Sprintf("%d %s", why.Code, http.StatusText(int(why.Code))),
		StatusCode: int(why.Code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, ContentLength: int64(len(body)),
		Body: io.NopCloser(bytes.NewReader(body)), Request: r,
	}
}

func isRestored(err error) bool {
	return err != nil && (apierrors.HasStatusCause(err, causeRestored) || strings.Contains(err.Error(), string(causeRestored)))
}
