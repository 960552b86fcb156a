package httpapi

import (
	"crypto/tls"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/bcsnet/bcsnet/pkg/access"
)

// onNode is a user on a node, as the API server names it.
func onNode(name string) access.User {
	return access.User{
		Username: "plugin", Extra: map[string]authenticationv1.ExtraValue{"authentication.kubernetes.io/node-name": {name}},
	}
}

// onOneHost has every node at one address.
func onOneHost(o *Options) {
	o.HostsOf = func(string) []netip.Addr { return []netip.Addr{netip.MustParseAddr("10.0.0.1")} }
}

// A node has a burst of requests, and then so many a second, from whatever address it calls. What gives addresses back
// is taken all the same; other nodes, other hosts and this machine are none of it.
func TestRateOfANode(t *testing.T) {
	t.Parallel()
	g := &questions{user: onNode("a"), recalls: true}
	f := newFixture(t, knows(g), plainHTTP, onOneHost)
	const body = `{"host":"10.0.0.1","podNamespace":"a"}`
	status := func(secure bool, source, method, path string) int {
		code, _ := f.from(t, source, secure, method, path, body)
		return code
	}
	refused := 0
	for range 2 * burst {
		if status(true, "192.0.2.7:1", "POST", prefixOf("")) == http.StatusTooManyRequests {
			refused++
		}
	}
	if refused == 0 || refused > burst {
		t.Fatalf("%d of %d requests were refused", refused, 2*burst)
	}
	until := func() bool { // tokens come back while the test runs: it is empty once more, then
		for range burst {
			if status(true, "192.0.2.8:1", "GET", prefixOf("")) == http.StatusTooManyRequests {
				return true
			}
		}
		return false
	}
	if !until() {
		t.Error("lists are not counted, or another address of the node is another caller")
	}
	for _, op := range [][2]string{
		{"DELETE", prefixOf("")}, {"DELETE", prefixOf("/ip/10.0.0.9")}, {"DELETE", prefixOf("/host/10.0.0.1")},
		{"POST", prefixOf("/gc")}, {"POST", "/v1/ip"}, {"POST", "/v1/filter"},
	} {
		if until() && status(true, "192.0.2.7:1", op[0], op[1]) == http.StatusTooManyRequests {
			t.Errorf("%s %s is refused", op[0], op[1])
		}
	}
	if status(false, "127.0.0.1:1", "POST", prefixOf("")) == http.StatusTooManyRequests {
		t.Error("the own machine is refused")
	}
	g.user = onNode("b")
	if status(true, "192.0.2.7:1", "POST", prefixOf("")) == http.StatusTooManyRequests {
		t.Error("another node is refused")
	}
}

// A host that calls by plain HTTP is counted by its address, whatever it says to be.
func TestRateOfAHost(t *testing.T) {
	t.Parallel()
	f := newFixture(t, plainHTTP)
	send := func(source, path string) *httptest.ResponseRecorder {
		r := localRequest("POST", path, strings.NewReader(`{"host":"192.0.2.7"}`))
		r.RemoteAddr = source
		r.Header.Set("X-Forwarded-For", "192.0.2.200")
		w := httptest.NewRecorder()
		f.handler.ServeHTTP(w, r)
		return w
	}
	var last *httptest.ResponseRecorder
	for range 2 * burst {
		if last = send("192.0.2.7:1", prefixOf("")); last.Code == http.StatusTooManyRequests {
			break
		}
	}
	if last.Code != http.StatusTooManyRequests || last.Header().Get("Retry-After") == "" ||
		last.Header().Get("Bcsnet-Reason") != "TooManyRequests" {
		t.Errorf("%d %v", last.Code, last.Header())
	}
	if send("192.0.2.8:1", prefixOf("")).Code == http.StatusTooManyRequests {
		t.Error("another host is refused")
	}
}

// Callers of an address who are nobody are not looked for without end: the API server is asked about each. Who is
// remembered is answered all the same, and so is who gives back.
func TestRateOfTheUnknown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, rateOfTheUnknown) // no time passes between two requests there
}

func rateOfTheUnknown(t *testing.T) {
	g := &questions{unknown: true}
	f := newFixture(t, knows(g))
	send := func(source, method string) int {
		r := localRequest(method, prefixOf(""), strings.NewReader(`{}`))
		r.RemoteAddr, r.TLS = source, &tls.ConnectionState{}
		w := httptest.NewRecorder()
		f.handler.ServeHTTP(w, r)
		return w.Code
	}
	until := func() bool {
		for range 2 * burst {
			if send("[2001:db8::7]:1", "POST") == http.StatusTooManyRequests {
				return true
			}
		}
		return false
	}
	if !until() {
		t.Fatal("nobody is refused")
	}
	if until() && send("[2001:db8::8]:1", "POST") == http.StatusUnauthorized {
		t.Error("another address of the same network is looked for")
	}
	if until() && send("[2001:db8::7]:1", "DELETE") != http.StatusUnauthorized {
		t.Error("who gives back is not looked for")
	}
	if send("[2001:db8:1::7]:1", "POST") != http.StatusUnauthorized {
		t.Error("another network is not looked for")
	}
	until()
	g.unknown, g.user = false, access.User{Username: "known"}
	if send("[2001:db8::7]:1", "POST") == http.StatusTooManyRequests {
		t.Error("who is remembered is refused")
	}
}

// What is remembered of callers is bounded.
func TestRatesAreBounded(t *testing.T) {
	t.Parallel()
	a := newRates(nil)
	for i := range 2 * maxRates {
		a.of(rateHost, netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}).String())
	}
	if n := a.by[rateHost].Len(); n > maxRates {
		t.Errorf("%d hosts are remembered", n)
	}
	if one, again := a.of(rateNode, "a"), a.of(rateNode, "a"); one != again || one == a.of(rateHost, "a") {
		t.Error("a caller has several rates, or shares one")
	}
}

// What gives addresses back and is nobody's waits for its turn above the rate, and is refused by 503 then, never by
// 429. A known caller is answered meanwhile.
func TestTurnsOfTheUnknown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := &questions{unknown: true}
		f := newFixture(t, knows(g))
		flood(t, f, "DELETE", prefixOf(""), func(int) string { return `{}` }, http.StatusUnauthorized, burst+2*perSecond)
		g.unknown, g.user = false, access.User{Username: "known"}
		if status, _ := f.from(t, "192.0.2.7:1", true, "DELETE", prefixOf(""), `{}`); status == http.StatusServiceUnavailable {
			t.Error("who is remembered waits")
		}
	})
}

// A user who is refused again and again, with releases that free nothing, has RBAC asked no more than a burst of times,
// whatever namespaces or hosts he names.
func TestTurnsOfTheDenied(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := &questions{user: access.User{Username: "nobody"}}
		f := newFixture(t, knows(g))
		body := func(i int) string { return fmt.Sprintf(`{"host":"10.0.0.1","podNamespace":"n%d"}`, i) }
		flood(t, f, "DELETE", prefixOf(""), body, http.StatusForbidden, burst)
		if n := len(g.asked); n != burst {
			t.Errorf("RBAC is asked %d times", n)
		}
		if status, _ := f.from(t, "192.0.2.7:1", true, "POST", prefixOf(""), body(0)); status != http.StatusTooManyRequests {
			t.Errorf("an ADD of him: %d", status)
		}
		g.user = access.User{Username: "other"}
		if status, _ := f.from(t, "192.0.2.7:1", true, "DELETE", prefixOf(""), body(0)); status != http.StatusForbidden {
			t.Errorf("another user: %d", status)
		}
	})
}

// galaxy's release gives addresses back, too.
func TestTurnsOfGalaxysReleases(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, knows(&questions{unknown: true}))
		flood(t, f, "POST", "/v1/ip", func(int) string { return `{"ips":[]}` }, http.StatusUnauthorized, burst+2*perSecond)
	})
}

// flood sends requests that are refused with a status, twice as many as are asked about within the time of a turn.
func flood(t *testing.T, f *fixture, method, path string, body func(i int) string, refused, asked int) {
	t.Helper()
	const all = 2 * (burst + 2*perSecond)
	var mu sync.Mutex
	got := map[int]int{}
	send := func(i int) {
		status, _ := f.from(t, "192.0.2.7:1", true, method, path, body(i))
		mu.Lock()
		defer mu.Unlock()
		got[status]++
	}
	for i := range burst { // one after the other: of those at once all are asked
		send(i)
	}
	var together sync.WaitGroup
	for i := range all - burst {
		together.Go(func() { send(burst + i) })
	}
	together.Wait()
	if want := map[int]int{refused: asked, http.StatusServiceUnavailable: all - asked}; !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
