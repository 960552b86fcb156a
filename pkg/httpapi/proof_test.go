package httpapi

import (
	"bytes"
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/bcsnet/bcsnet/pkg/httpapi/wire"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/replica"
)

// forwarded is what arrives here of a request that another replica forwards. change may forge it on its way.
func (f *fixture) forwarded(secret []byte, arrived time.Time, change func(*http.Request)) (forwarding, error) {
	body := []byte(`{"a":1}`)
	from := &fakePeers{
		self: replica.Identity{Name: "there", Life: "b"}, secrets: map[string][]byte{f.Peers.Self().ID(): secret},
	}
	leader := Leader{Identity: f.Peers.Self()}
	out := localRequest(http.MethodPost, wire.Prefix+"?x=1", bytes.NewReader(body)) // it comes from 192.0.2.1
	out.Header.Set(headerForwarded, from.self.ID())
	out.Header.Set(headerArrived, arrived.Format(time.RFC3339Nano))
	out.Header.Set(headerCaller, "10.0.0.9")
	out.Header.Set(headerTimeout, "5000")
	out.Header.Set("X-Request-Id", "id")
	(&Forwarder{peers: from}).prove(out, leader, body)
	if change != nil {
		change(out)
	}
	var read bytes.Buffer
	_, _ = read.ReadFrom(out.Body) // it is in memory
	r := asCall(out)
	if err := f.callers.checkArrival(r, read.Bytes()); err != nil {
		return forwarding{}, err
	}
	return forwardingOf(r), nil
}

// asCall returns a request as it is in the middlewares.
func asCall(r *http.Request) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), callKey{}, &call{forwarding: readForwarding(r)}))
}

// What a replica says of a request counts when it proves to be one, for that request alone, and its time only within
// the time that a request may take. Anybody else is refused with a status that has a replica answer by itself.
func TestForwardedRequestsAreProven(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	secret := bytes.Repeat([]byte("s"), 32)
	f.Peers.(*fakePeers).secrets = map[string][]byte{"there_b": secret, "third_c": bytes.Repeat([]byte("t"), 32)}
	now := f.Leases.Now()
	h, err := f.forwarded(secret, now.Add(-3*time.Second), nil)
	if err != nil || !h.arrived.Equal(now.Add(-3*time.Second)) || h.caller != "10.0.0.9" || h.from != "there_b" {
		t.Errorf("a replica: %+v, %v", h, err)
	}
	h, err = f.forwarded(secret, now.Add(time.Hour), nil)
	if err != nil || h.arrived.Before(now) || h.arrived.After(f.Leases.Now()) {
		t.Errorf("a replica whose clock is ahead: %+v, %v", h, err)
	}
	set := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	for name, c := range map[string]struct {
		secret  []byte
		arrived time.Time
		change  func(*http.Request)
	}{
		"no proof":             {secret, now, func(r *http.Request) { r.Header.Del(headerProof) }},
		"a release without":    {nil, now, nil},
		"another secret":       {bytes.Repeat([]byte("x"), 32), now, nil},
		"an empty secret":      {[]byte{}, now, nil},
		"nonsense":             {secret, now, set(headerProof, "x")},
		"a replica not known":  {secret, now, set(headerForwarded, "nobody_x")},
		"another replica":      {secret, now, set(headerForwarded, "third_c")},
		"another time":         {secret, now, set(headerArrived, now.Add(-time.Second).Format(time.RFC3339Nano))},
		"another caller":       {secret, now, set(headerCaller, "10.0.0.8")},
		"another time to wait": {secret, now, set(headerTimeout, "6000")},
		"another request ID":   {secret, now, set("X-Request-Id", "x")},
		"another method":       {secret, now, func(r *http.Request) { r.Method = http.MethodDelete }},
		"another path":         {secret, now, func(r *http.Request) { r.RequestURI = wire.Prefix }},
		"another body":         {secret, now, func(r *http.Request) { r.Body = localRequest("", "/", bytes.NewReader([]byte("{}"))).Body }},
		"a minute ago":         {secret, now.Add(-time.Minute), nil},
	} {
		if h, err := f.forwarded(c.secret, c.arrived, c.change); err == nil ||
			asRefusal(err).Reason != ipam.ReasonUnavailable {
			t.Errorf("%s: %+v, %v", name, h, err)
		}
	}
}

// A client that says it is a replica changes nothing: no operation answers it, whatever else it claims.
func TestForgedHop(t *testing.T) {
	f := newFixture(t)
	for _, op := range samples(f.Service) {
		if _, page := f.pages()[op[1]]; page {
			continue
		}
		r := localRequest(op[0], op[1], bytes.NewReader([]byte(`{"Pod":{},"NodeNames":[]}`)))
		r.Header.Set(headerForwarded, "anything")
		r.Header.Set(headerArrived, "2199-01-02T03:04:05Z")
		r.Header.Set(headerCaller, "10.0.0.9")
		f.log.Reset()
		if status, _ := f.send(t, r); status < http.StatusInternalServerError ||
			!strings.Contains(f.log.String(), "does not prove") {
			t.Errorf("%s %s: %d", op[0], op[1], status)
		}
	}
}
