package cli

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	v1 "github.com/bcsnet/bcsnet/api/v1"
)

// asBefore is a proxy whose first answer about an address is from before its store was put back: the object as it was
// then, with the version that the object has now. Nothing else tells a client that two writes share a version.
func (f *fixture) asBefore(t *testing.T, address string, then, now func()) (url string) {
	t.Helper()
	then()
	old := f.object(t, address)
	now()
	old.ResourceVersion = f.object(t, address).ResourceVersion
	var once sync.Once
	return proxy(t, func(rw http.ResponseWriter, r *http.Request, next http.Handler) {
		one, list := strings.HasSuffix(r.URL.Path, "/bcsnetips/"+address), strings.HasSuffix(r.URL.Path, "/bcsnetips")
		if r.Method != http.MethodGet || !one && !list || r.URL.Query().Has("watch") {
			next.ServeHTTP(rw, r)
			return
		}
		r.Header.Del("Accept-Encoding")
		answer := httptest.NewRecorder()
		next.ServeHTTP(answer, r)
		body := answer.Body.Bytes()
		once.Do(func() { body = replaced(t, body, old) })
		rw.Header().Set("Content-Type", answer.Header().Get("Content-Type"))
		rw.Header().Set("Date", answer.Header().Get("Date"))
		rw.WriteHeader(answer.Code)
		_, _ = rw.Write(body) // the command has what it wants
	})
}

// replaced is an answer, of one object or a list, with an object as it was.
func replaced(t *testing.T, body []byte, with *v1.BCSNetIP) []byte {
	t.Helper()
	with.SetGroupVersionKind(v1.GroupVersion.WithKind("BCSNetIP"))
	out := any(with)
	var all v1.BCSNetIPList
	if err := json.Unmarshal(body, &all); err != nil {
		t.Error(err)
	}
	if strings.HasSuffix(all.Kind, "List") {
		all.Items = slices.DeleteFunc(all.Items, func(o v1.BCSNetIP) bool { return o.Name == with.Name })
		all.Items = append(all.Items, *with)
		out = all
	}
	body, err := json.Marshal(out)
	if err != nil {
		t.Error(err)
	}
	return body
}

// TestDecidedBeforeARestore: a command decides, and waits for an answer or for a second look. Meanwhile the store is
// put back, and another write gets the version that the command has seen. The command leaves the new holder alone.
func TestDecidedBeforeARestore(t *testing.T) {
	const address = "10.1.0.20"
	f := newFixture(t)
	held := func(owner, host string) func() {
		return func() { f.haveLease(t, address, host, owner) }
	}
	state := func(status v1.BCSNetIPStatus) func() {
		return func() {
			held("vm-0", "10.0.0.11")() // the object exists
			ip := f.object(t, address)
			ip.Status = status
			if status.Status == v1.IPAvailable {
				ip.Finalizers = nil
			}
			if err := f.client.Update(t.Context(), ip); err != nil {
				t.Fatal(err)
			}
		}
	}
	free := state(v1.BCSNetIPStatus{Status: v1.IPAvailable})
	aside := state(v1.BCSNetIPStatus{Status: v1.IPReserved, UpdateTime: "2026-01-02T03:04:05Z"})
	for name, tc := range map[string]struct {
		then  func()
		args  []string
		wants []string
	}{
		"release": {held("vm-1", "10.0.0.11"), []string{"ip", "release", address, "--force", "--yes"},
			[]string{"from vm-1 on host 10.0.0.11 to vm-2 on host 10.0.0.12 (LeaseChanged)"}},
		"release of a host": {held("default/gone-0", "10.0.0.11"), []string{"release-host", "10.0.0.11", "--force"}, nil},
		"release of those that are gone": {held("default/gone-0", "10.0.0.11"),
			[]string{"ip", "release", "--pool", "blue", "--yes", "--settle", "0s"},
			[]string{address + " is not released: somebody else has changed it"}},
		"reserve":   {free, []string{"ip", "reserve", address}, []string{"is held by vm-2 on host 10.0.0.12 (AddressInUse)"}},
		"unreserve": {aside, []string{"ip", "unreserve", address}, []string{"changed hands meanwhile (LeaseChanged)"}},
	} {
		t.Run(name, func(t *testing.T) {
			f.havePool(t)
			f.haveReadyNode(t, "node-1", "10.0.0.11")
			url := f.asBefore(t, address, tc.then, held("vm-2", "10.0.0.12"))
			_, stderr := f.call(t, append([]string{"--server", url}, tc.args...)...)
			contains(t, stderr, tc.wants...)
			if is := f.object(t, address).Status; is.Status != v1.IPActive || is.Owner != "vm-2" {
				t.Errorf("%s is %s, of %q\n%s", address, is.Status, is.Owner, stderr)
			}
		})
	}
}
