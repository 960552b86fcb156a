package http_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/bcsnet/bcsnet/pkg/controller"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/inprocess"
)

// behindProxy is a site whose controller reaches the API server through a proxy.
func behindProxy(t *testing.T) (*site, *apiProxy, *instance) {
	t.Helper()
	p := newProxy(t, shared.cluster)
	// Not the leader: the writes that the proxy sees are those of requests.
	i := startFor(t, p.config(), nil)
	s := newSite(t)
	s.pool(5, nil)
	s.call = i.caller()
	controlplane.Eventually(t, func() error {
		if a := s.call.do(t, "GET", prefix+"/pool/"+s.Namespace, nil); a.Code != 0 ||
			s.call.get(t, "/pool/"+s.Namespace).Total != 5 {
			return fmt.Errorf("%s", a.Raw)
		}
		// A replica that has just started gives nothing new before others have told what they have seen.
		if a := s.add(object{"host": "203.0.113.1", "owner": "probe"}); a.Reason != ipam.ReasonHostNotInPool {
			return fmt.Errorf("%s", a.Raw)
		}
		return nil
	})
	return s, p, i
}

// Each change costs one write, a repetition none.
func TestWritesPerRequest(t *testing.T) {
	t.Parallel()
	s, p, _ := behindProxy(t)
	s.pod("web-0")
	body := s.request(newID(), "web-0")
	address := s.add(body).done(t)["ipAddr"].(string)
	uid := stored(t, address).Status.PodUID
	one := []string{"PUT " + address}
	for _, step := range []struct {
		name string
		do   func(object) answer
		body object
		want []string
	}{
		{"ADD", nil, nil, one},
		{"the same ADD", s.add, body, nil},
		{"the same with its address", s.add, with(body, "ipAddr", address), nil},
		{"ADD of a new container", s.add, with(body, "containerID", "next"), one},
		{"DEL of the old container", s.del, body, nil},
		{"DEL with the pod's UID", s.del, with(body, "containerID", "next", "podUID", uid), one},
		{"the same DEL", s.del, with(body, "containerID", "next", "podUID", uid), nil},
	} {
		if step.do != nil {
			step.do(step.body).done(t)
		}
		if got := p.takeWrites(); !slices.Equal(got, step.want) {
			t.Errorf("%s: writes %v, want %v", step.name, got, step.want)
		}
	}
}

// unavailable checks that an answer tells the caller to come again.
func unavailable(t *testing.T, a answer, reasons ...string) {
	t.Helper()
	if a.Status != http.StatusServiceUnavailable || a.Code != 2 || a.Result ||
		!slices.Contains(reasons, string(a.Reason)) ||
		a.Header.Get("Retry-After") != "1" || !strings.Contains(a.Hint, "ask again") {
		t.Errorf("want 503 for %v: %d, Retry-After %q, %s", reasons, a.Status, a.Header.Get("Retry-After"), a.Raw)
	}
}

// The API server answers nothing, or its answer is lost: the caller hears 503, and the same request later
// gets one address, whichever of the writes was stored.
func TestAPIServerAwayDuringARequest(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rule     rule
		add, del string // the reasons
	}{
		"away":                {away, "Unavailable", "OutcomeUnknown"},
		"away for writes":     {onlyWrites(away), "OutcomeUnknown", "OutcomeUnknown"},
		"the answer is lost":  {loseAnswer, "OutcomeUnknown", "OutcomeUnknown"},
		"500 for writes":      {onlyWrites(status(http.StatusInternalServerError)), "OutcomeUnknown", "OutcomeUnknown"},
		"500 for all":         {status(http.StatusInternalServerError), "Unavailable", "OutcomeUnknown"},
		"401 for all":         {status(http.StatusUnauthorized), "Unavailable", "Unavailable"},
		"a gateway's own 502": {onlyWrites(status(http.StatusBadGateway)), "OutcomeUnknown", "OutcomeUnknown"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, p, _ := behindProxy(t)
			s.pod("web-0")
			body := s.request(newID(), "web-0")
			container := body["containerID"].(string)

			p.set(c.rule)
			unavailable(t, s.add(body), c.add)
			if a := s.add(body); a.Code != 0 { // by now the watch may have settled it
				unavailable(t, a, c.add)
			}
			p.set(nil)
			var data object
			controlplane.Eventually(t, func() error {
				a := s.add(body)
				if a.Code != 0 {
					return fmt.Errorf("%s", a.Raw)
				}
				data = a.done(t)
				return nil
			})
			if got := active(t, shared.admin, container); !slices.Equal(got, []string{data["ipAddr"].(string)}) {
				t.Errorf("Active for the container are %v, the answer is %v", got, data["ipAddr"])
			}

			p.set(c.rule)
			unavailable(t, s.del(body), c.del)
			p.set(nil)
			controlplane.Eventually(t, func() error {
				if a := s.del(body); a.Code != 0 {
					return fmt.Errorf("%s", a.Raw)
				}
				return nil
			})
			if got := active(t, shared.admin, container); len(got) != 0 {
				t.Errorf("after DEL still Active: %v", got)
			}
		})
	}
}

// An API server that hangs keeps a request no longer than its bounds, and what it does afterwards is
// found out by the next.
func TestAPIServerHangs(t *testing.T) {
	t.Parallel()
	s, p, _ := behindProxy(t)
	body := object{"host": s.Host, "owner": s.owner("vm"), "containerID": newID()}
	g := newGate(s)
	p.set(g.leaseWrites)
	began := time.Now()
	unavailable(t, s.add(body), "OutcomeUnknown")
	if took := time.Since(began); took > time.Minute {
		t.Errorf("the answer took %s", took)
	}
	close(g.open)
	p.set(nil)
	address := s.add(body).done(t)["ipAddr"].(string)
	if got := active(t, shared.admin, body["containerID"].(string)); !slices.Equal(got, []string{address}) {
		t.Errorf("Active are %v, the answer is %s", got, address)
	}
}

// What the API server forbids is no matter of time.
func TestForbidden(t *testing.T) {
	t.Parallel()
	s, p, _ := behindProxy(t)
	body := object{"host": s.Host, "owner": s.owner("vm")}
	p.set(onlyWrites(status(http.StatusForbidden)))
	s.add(body).refusedWith(t, "Forbidden")
	p.set(nil)
	s.add(body).done(t)
	p.set(onlyWrites(status(http.StatusForbidden)))
	s.del(body).refusedWith(t, "Forbidden")
	p.set(status(http.StatusForbidden))
	s.call.do(t, "DELETE", prefix+"/host/"+s.Host, nil).refusedWith(t, "Forbidden")
}

func onlyWrites(r rule) rule {
	return func(p *apiProxy, w http.ResponseWriter, req *http.Request) bool {
		return isLeaseWrite(req) && r(p, w, req)
	}
}

// status answers as an API server that fails.
func status(code int) rule {
	return func(_ *apiProxy, w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_, _ = fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"told to","code":%d}`, code)
		return true
	}
}

// A host that is released half way says so, and the rest goes with the next call.
func TestReleaseHostHalfWay(t *testing.T) {
	t.Parallel()
	s, p, _ := behindProxy(t)
	var addresses []string
	for i := range 4 {
		addresses = append(addresses, s.add(object{
			"host": s.Host, "owner": s.owner(fmt.Sprint(i)),
		}).done(t)["ipAddr"].(string))
	}
	p.set(onlyWrites(func(_ *apiProxy, w http.ResponseWriter, r *http.Request) bool {
		return strings.HasSuffix(r.URL.Path, addresses[2]) && status(http.StatusUnauthorized)(nil, w, r)
	}))
	a := s.call.do(t, "DELETE", prefix+"/host/"+s.Host, nil)
	unavailable(t, a, "Unavailable")
	if !strings.Contains(a.Message, "3 addresses are released already") {
		t.Errorf("message %q", a.Message)
	}
	p.set(nil)
	var rest []string
	s.call.do(t, "DELETE", prefix+"/host/"+s.Host, nil).doneInto(t, &rest)
	if !slices.Equal(rest, addresses[2:3]) {
		t.Errorf("the next call freed %v, want %v", rest, addresses[2:3])
	}
}

// A client that leaves gets no address, or gives it back by the DEL that follows.
func TestClientLeaves(t *testing.T) {
	t.Parallel()
	s, p, _ := behindProxy(t)
	s.pod("web-0")
	body := s.request(newID(), "web-0")
	g := newGate(s)
	p.set(g.leaseWrites)
	ctx, leave := context.WithCancel(t.Context())
	pending := inBackground(ctx, s.call, "POST", prefix, body)
	g.waitArrived(t)
	leave()
	if r := <-pending; r.err == nil {
		t.Errorf("the request that left was answered: %s", r.Raw)
	}
	close(g.open)
	p.set(nil)
	s.del(body).done(t)
	controlplane.Eventually(t, func() error {
		if got := active(t, shared.admin, body["containerID"].(string)); len(got) != 0 {
			return fmt.Errorf("Active: %v", got)
		}
		return nil
	})
	s.add(with(body, "startedAt", time.Now().Add(-time.Minute).Format(time.RFC3339Nano))).
		refusedWith(t, "ContainerDeleted")
}

// SIGTERM lets a request that is under way finish, and takes no new ones.
func TestEndFinishesRequests(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]func(*testing.T, *rest.Config) (url string, end func() error){
		"in process": func(t *testing.T, cfg *rest.Config) (string, func() error) {
			t.Helper()
			i, err := inprocess.Start(cfg, nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := i.WaitReady(t.Context()); err != nil {
				t.Fatal(errors.Join(err, i.Stop()))
			}
			return i.URL, i.Stop
		},
		"the program": func(t *testing.T, cfg *rest.Config) (string, func() error) {
			t.Helper()
			kubeconfig := t.TempDir() + "/kubeconfig"
			if err := controlplane.WriteKubeconfigFor(cfg, kubeconfig); err != nil {
				t.Fatal(err)
			}
			c, err := shared.cluster.StartController(t.Context(), controlplane.ControllerOptions{
				Name: "sigterm", Binary: program(t), Args: []string{"--kubeconfig", kubeconfig},
			})
			if err != nil {
				t.Fatal(err)
			}
			return c.URL, c.Stop
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProxy(t, shared.cluster)
			url, end := begin(t, p.config())
			s := newSite(t)
			s.pool(2, nil)
			s.call = caller{url}
			controlplane.Eventually(t, func() error {
				if a := s.call.do(t, "GET", prefix+"/pool/"+s.Namespace, nil); a.Code != 0 {
					return fmt.Errorf("%s", a.Raw)
				}
				return nil
			})
			s.pod("web-0")
			body := s.request(newID(), "web-0")
			g := newGate(s)
			p.set(g.leaseWrites)
			pending := inBackground(t.Context(), s.call, "POST", prefix, body)
			g.waitArrived(t)
			ended := make(chan error, 1)
			go func() { ended <- end() }()
			controlplane.Eventually(t, func() error {
				_, _, err := getText(t.Context(), url+"/healthz")
				if !errors.Is(err, syscall.ECONNREFUSED) {
					return fmt.Errorf("it still takes requests (%v)", err) //nolint:errorlint // may be nil
				}
				return nil
			})
			select {
			case err := <-ended:
				t.Errorf("it ended before the request: %v", err)
			case r := <-pending:
				t.Errorf("answered before the write: %s, %v", r.Raw, r.err)
			default:
			}
			began := time.Now()
			close(g.open)
			address := (<-pending).must(t).done(t)["ipAddr"].(string)
			if err := <-ended; err != nil {
				t.Error(err)
			}
			if took := time.Since(began); took > time.Minute {
				t.Errorf("the end took %s after the write", took)
			}
			if got := active(t, shared.admin, body["containerID"].(string)); !slices.Equal(got, []string{address}) {
				t.Errorf("Active are %v, the answer was %s", got, address)
			}
			if got := allocatorOf(t).do(t, "POST", prefix, body).done(t)["ipAddr"]; got != address {
				t.Errorf("the next replica answers %v, want %s", got, address)
			}
		})
	}
}

// A real API server that stops in the middle, and comes back.
func TestAPIServerStopsAndReturns(t *testing.T) {
	t.Parallel()
	cp := controlplane.ForTest(t)
	if err := cp.InstallManifests(t.Context()); err != nil {
		t.Fatal(err)
	}
	i := startFor(t, account(t, cp), func(o *controller.Options) { o.LeaderElect = false })
	if out, err := cp.Kubectl(t.Context(), "apply", "-f", samplePool(t)).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	call := i.caller()
	body := func(n int) object {
		return object{"host": "10.0.0.11", "owner": fmt.Sprintf("vm-%d", n), "containerID": fmt.Sprintf("c-%d", n)}
	}
	var first object
	controlplane.Eventually(t, func() error {
		a := call.do(t, "POST", prefix, body(1))
		if a.Code != 0 {
			return fmt.Errorf("%s", a.Raw)
		}
		first = a.done(t)
		return nil
	})
	if err := cp.StopAPIServer(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		unavailable(t, call.do(t, "POST", prefix, body(1)), "Unavailable")
		unavailable(t, call.do(t, "POST", prefix, body(2)), "Unavailable", "OutcomeUnknown")
		unavailable(t, call.do(t, "DELETE", prefix, body(1)), "Unavailable", "OutcomeUnknown")
		unavailable(t, call.do(t, "DELETE", prefix+"/host/10.0.0.11", nil), "Unavailable")
		unavailable(t, call.do(t, "DELETE", prefix+"/ip/"+first["ipAddr"].(string), object{"owner": "vm-1"}), "Unavailable")
	}
	// What is only read comes from memory.
	if got := addressesOf(call.get(t, "?status=Active")); !slices.Equal(got, []string{first["ipAddr"].(string)}) {
		t.Errorf("Active are %v", got)
	}
	if err := cp.StartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	admin := adminFor(t, cp)
	for n := range 2 {
		var got string
		controlplane.Eventually(t, func() error {
			a := call.do(t, "POST", prefix, with(body(n+1), "startedAt", time.Now().Add(time.Second).Format(time.RFC3339Nano)))
			if a.Code != 0 {
				return fmt.Errorf("%s", a.Raw)
			}
			got = a.done(t)["ipAddr"].(string)
			return nil
		})
		if all := active(t, admin, fmt.Sprintf("c-%d", n+1)); !slices.Equal(all, []string{got}) {
			t.Errorf("Active for c-%d are %v, the answer is %s", n+1, all, got)
		}
	}
}
