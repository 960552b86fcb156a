package httpapi

import (
	"log/slog"
	"net/http"
	"testing"

	"github.com/bcsnet/bcsnet/pkg/allocator"
	"github.com/bcsnet/bcsnet/pkg/httpapi/wire"
	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// FuzzBody: any body is refused for a reason that is the caller's, or names a host and somebody whom the address
// is for, within the bounds of the object that it is stored in.
func FuzzBody(f *testing.F) {
	for _, body := range []string{
		`{"host":"10.0.0.11","containerID":"c","podName":"web-0","podNamespace":"shop","ipAddr":"10.0.0.21,2001:db8::21","hostGateway":"10.0.0.1","ifName":"eth0","podUID":"u","startedAt":"2026-01-02T03:04:05.6Z"}`,
		`{"host":"10.0.0.11","owner":"vm-1","network":"n"}`, `{"host":"10.0.0.11","containerID":1}`, `{"HOST":"::1","more":{}}`,
		`{"host":"10.0.0.11","cniNetwork":"pods","startedAt":"2026-01-02T03:04:05.6Z","attachments":[{"containerID":"c","ifName":"eth0"}]}`,
		`{"host":"10.0.0.11","cniNetwork":"pods","startedAt":"2026-01-02T03:04:05Z","attachments":null}`,
		`{"containerID":"c","mac":"02-00-5E-10-00-01"}`, `{"containerID":"c","mac":"00:00:00:00:00:00"}`,
		`{}`, `null`, `[]`, `"x"`, `{"host":`, ``,
	} {
		f.Add([]byte(body))
	}
	s := &bodies{log: slog.New(slog.DiscardHandler)}
	f.Fuzz(func(t *testing.T, body []byte) {
		r := localRequest(http.MethodPost, wire.Prefix, nil)
		refused := func(err error) bool {
			switch reason := asRefusal(err).Reason; {
			case err == nil:
				return false
			case reason == ipam.ReasonBadRequest, reason == ipam.ReasonMissingField, reason == ipam.ReasonBadAddress:
				return true
			default:
				t.Errorf("%q is refused as %s: %v", body, reason, err)
				return true
			}
		}
		var in wire.AllocateRequest
		if !refused(s.decode(r, body, &in)) {
			got, err := parseAllocate(in)
			if !refused(err) && (!got.Host.IsValid() || got.ContainerID == "" && got.Owner == "" || got.Owner == "" &&
				(got.PodName == "" || got.Namespace == "") ||
				len(got.Addrs) > 2 || len(got.ContainerID) > maxContainerID || len(got.IfName) > maxIfName ||
				len(got.PodUID) > maxUID) {
				t.Errorf("%q is read as %+v", body, got)
			}
		}
		var del wire.ReleaseRequest
		if !refused(s.decode(r, body, &del)) {
			got, err := parseRelease(del)
			if !refused(err) && got.ContainerID == "" && got.Owner == "" {
				t.Errorf("%q is read as %+v", body, got)
			}
		}
		var one wire.ReleaseAddressRequest
		refused(s.decode(r, body, &one))
		var gc wire.GCRequest
		if !refused(s.decode(r, body, &gc)) {
			got, err := parseGC(gc)
			if !refused(err) && (!got.Host.IsValid() || got.CNINetwork == "" || got.StartedAt.IsZero() ||
				gc.Attachments == nil ||
				len(got.Attachments) != len(gc.Attachments) || len(got.Attachments) > wire.MaxAttachments) {
				t.Errorf("%q is read as %+v", body, got)
			}
		}
		var conflict wire.ConflictRequest
		if !refused(s.decode(r, body, &conflict)) {
			if mac, err := parseConflict(conflict); !refused(err) && (len(mac) != 17 || conflict.ContainerID == "") {
				t.Errorf("%q is read as %q", body, mac)
			}
		}
	})
}

// FuzzHeaders: any headers give a request a time of its own within bounds, and what only replicas send counts from
// replicas alone: nobody guesses a proof.
func FuzzHeaders(f *testing.F) {
	f.Add("1500", "replica-0_abc", "2026-01-02T03:04:05.6Z", "10.0.0.9", "x")
	f.Add("-1", "", "yesterday", "x", "")
	f.Add("99999999999999999999", " ", "0001-01-01T00:00:00Z", "fe80::1%eth0", "AAAA")
	b := newFixture(f)
	b.Peers.(*fakePeers).secrets = map[string][]byte{"replica-0_abc": []byte("nobody knows this")}
	f.Fuzz(func(t *testing.T, timeout, forwarded, arrived, from, proof string) {
		r := localRequest(http.MethodPost, wire.Prefix, nil)
		for name, value := range map[string]string{
			headerTimeout: timeout, headerForwarded: forwarded, headerArrived: arrived, headerCaller: from,
			headerProof: proof,
		} {
			r.Header[name] = []string{value}
		}
		switch limit, err := readTimeout(r); {
		case err != nil && asRefusal(err).Reason != ipam.ReasonBadRequest, limit <= 0, limit > allocator.MaxRequestTime:
			t.Errorf("%q: %s, %v", timeout, limit, err)
		}
		began := b.Leases.Now()
		r = asCall(r)
		err := b.callers.checkArrival(r, nil)
		if (err == nil) != (forwarded == "") {
			t.Errorf("forwarded by %q: %v", forwarded, err)
		}
		if err != nil {
			return
		}
		if h := forwardingOf(r); h.from != "" || h.caller != caller(r) || h.arrived.Before(began) ||
			h.arrived.After(b.Leases.Now()) {
			t.Errorf("from a client: %+v", h)
		}
	})
}

// FuzzSubject: what decides who may send a request reads the same host and namespace from a body as what acts on it.
func FuzzSubject(f *testing.F) {
	for _, body := range []string{
		`{"host":"10.0.0.1","podNamespace":"a"}`, `{"host":"10.0.0.1","Host":"10.0.0.2","HOST":null}`,
		`{"hoſt":"10.0.0.1","\u0068ost":"x","podNamespace":1,"podNamespace":"b"}`, `{"host":{"host":"x"}}`, `[{"host":"x"}]`,
		`{"PODNAMESPACE":"a","podnamespace":"b","attachments":[{"host":"c"}]}`,
	} {
		f.Add([]byte(body))
	}
	s := &bodies{log: slog.New(slog.DiscardHandler)}
	f.Fuzz(func(t *testing.T, body []byte) {
		r := localRequest(http.MethodPost, wire.Prefix, nil)
		if status, err := checkBody(body, maxBody, nil); err != nil || status != http.StatusOK {
			return // nobody reads it
		}
		of := subjectOf(r, route{hasBody: true}, body)
		var add wire.AllocateRequest
		if s.decode(r, body, &add) == nil && of != (subject{add.Host, add.PodNamespace}) {
			t.Errorf("%q: %+v decides about an ADD of %q in %q", body, of, add.Host, add.PodNamespace)
		}
		var del wire.ReleaseRequest
		if s.decode(r, body, &del) == nil && of != (subject{del.Host, del.PodNamespace}) {
			t.Errorf("%q: %+v decides about a DEL of %q in %q", body, of, del.Host, del.PodNamespace)
		}
		var gc wire.GCRequest
		if s.decode(r, body, &gc) == nil && of.Host != gc.Host {
			t.Errorf("%q: %+v decides about a collection of %q", body, of, gc.Host)
		}
	})
}
