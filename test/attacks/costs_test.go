package attacks_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

// costs are attacks by what a request or a connection costs.
func costs() []attack {
	return []attack{
		{"flood_of_DELs", floodOfDELs}, {"connections_without_end", connections}, {"slow_large_bodies", slowBodies},
		{"names_that_write_lines", oddNames}, {"flood_of_certificates", floodOfCertificates},
	}
}

// questions returns how often the API server was asked to make objects of a resource.
func questions(t *testing.T, resource string) float64 {
	t.Helper()
	return asked(t, resource, "POST")
}

// asked returns how often the API server was asked to do something with a resource.
func asked(t *testing.T, resource, verb string) (n float64) {
	t.Helper()
	set, err := kubernetes.NewForConfig(shared.cluster.Config)
	if err != nil {
		t.Fatal(err)
	}
	text, err := set.RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		rest, ok := strings.CutPrefix(strings.TrimSpace(line), "apiserver_request_total{")
		if !ok || !strings.Contains(rest, `resource="`+resource+`"`) || !strings.Contains(rest, `verb="`+verb+`"`) {
			continue
		}
		var count float64
		if _, err := fmt.Sscan(rest[strings.LastIndexByte(rest, ' ')+1:], &count); err != nil {
			t.Fatal(err)
		}
		n += count
	}
	return n
}

// DELs are never answered with 429. With tokens that are nobody's, or that are denied, they do not cost the API server
// a question each all the same.
func floodOfDELs(t *testing.T, w *world) {
	const most, workers = 4000, 200
	body := w.add("web-none", mine)
	known := ask{token: w.node, method: "DELETE", path: prefix, body: body}
	for resource, of := range map[string]func(i int) ask{
		"tokenreviews": func(i int) ask { return ask{source: "127.0.0.14", token: fmt.Sprintf("token-%d", i), body: body} },
		"subjectaccessreviews": func(i int) ask {
			return ask{source: "127.0.0.17", token: w.nobody, body: with(body, "podNamespace", fmt.Sprintf("n%d", i))}
		},
	} {
		known.source = of(0).source
		w.send(t, known).done(t, "a node's DEL before")
		before, began := questions(t, resource), time.Now()
		k := w.keep(t, known.source)
		var mu sync.Mutex
		got, next := map[int]int{}, 0
		var all sync.WaitGroup
		for range workers {
			all.Go(func() {
				for {
					mu.Lock()
					i := next
					next++
					mu.Unlock()
					if i >= most {
						return
					}
					a := of(i)
					a.method, a.path = "DELETE", prefix
					status := k.send(t.Context(), a)
					mu.Lock()
					got[status]++
					mu.Unlock()
				}
			})
		}
		w.send(t, known).done(t, "a node's DEL meanwhile")
		all.Wait()
		// The burst, what comes free each second, and those that were asked at once.
		bound := 300 + 50*time.Since(began).Seconds() + workers + 100
		asked := questions(t, resource) - before
		t.Logf("%d DELs: %v; %.0f %s", most, got, asked, resource)
		if asked > bound {
			t.Errorf("%.0f %s for %d DELs, at most %.0f", asked, resource, most, bound)
		}
		if got[http.StatusTooManyRequests] > 0 || got[http.StatusServiceUnavailable] == 0 {
			t.Errorf("%s: DELs are answered with %v", resource, got)
		}
		w.send(t, known).done(t, "a node's DEL after")
	}
}

// Of connections of callers who are nobody the oldest go. Who is known keeps his, and gets new ones.
func connections(t *testing.T, w *world) {
	const source, most, more = "127.0.0.15", 1024, 200
	known := list(w.operator)
	known.to, known.source = shared.strict, source
	k := w.keep(t, source)
	if status := k.sendTo(t.Context(), shared.strict, known); status != http.StatusOK {
		t.Fatalf("an operator before: %d", status)
	}
	opened := k.opened.Load()
	var open []net.Conn
	address := strings.TrimPrefix(shared.strict.URL, "http://")
	for range most + more {
		c, err := from(source)(t.Context(), "tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() }) // it may have gone before
		// It is answered, and then kept: that is not slow.
		if _, err := io.WriteString(c, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			continue // it has gone for a later one
		}
		_ = c.SetReadDeadline(time.Now().Add(time.Minute))
		if _, err := c.Read(make([]byte, 1024)); err == nil {
			open = append(open, c)
		}
	}
	controlplane.Eventually(t, func() error {
		kept := 0
		for _, c := range open {
			_ = c.SetReadDeadline(time.Now().Add(time.Millisecond))
			_, err := c.Read(make([]byte, 1))
			if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() {
				kept++
			}
		}
		if kept > most || kept == 0 {
			return fmt.Errorf("%d connections are kept", kept)
		}
		return nil
	})
	if status := k.sendTo(t.Context(), shared.strict, known); status != http.StatusOK || k.opened.Load() != opened {
		t.Errorf("an operator's own connection: %d, %d were opened", status, k.opened.Load())
	}
	w.send(t, known).done(t, "an operator by a new connection")
}

// A node that begins large bodies and ends none has no room of others.
func slowBodies(t *testing.T, w *world) {
	const announced, part = 2 << 20, 1<<20 + 1
	address := strings.TrimPrefix(shared.shipped.URL, "http://")
	head := fmt.Sprintf("POST %s/gc HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n{", prefix,
		serverName, w.node, announced)
	var sent, ended sync.WaitGroup
	for range 100 {
		c := w.dialTLS(t, address)
		sent.Add(1)
		ended.Go(func() {
			defer c.Close()
			_, _ = io.WriteString(c, head+strings.Repeat(" ", part)) // it may be refused before
			sent.Done()
			_ = c.SetReadDeadline(time.Now().Add(time.Minute)) // longer than any of them may last
			if _, err := io.Copy(io.Discard, c); err != nil {
				if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() {
					t.Error("a body that does not end is waited for")
				}
			}
		})
	}
	sent.Wait()
	other := ask{
		token: w.theirNode, method: "POST", path: prefix + "/gc", body: with(gcOf(theirs), "ignored", strings.Repeat("a", 1<<20)),
	}
	other.body = with(other.body.(object), "attachments", []object{{
		"containerID": w.victim["containerID"], "ifName": "eth0",
	}})
	w.send(t, other).done(t, "a large body of another node meanwhile")
	ended.Wait()
}

// The name of a certificate stands in the log and in histories, and in a header to another replica.
func oddNames(t *testing.T, w *world) {
	end := time.Now().Add(time.Hour)
	for _, name := range []string{
		"mallory\nuser=admin", "mallory\r\nBcsnet-Hosts: ", "mallory\x1b[2J", "mallory\x00", "nimda\u202e", "a\u2028b",
	} {
		w.send(t, show(ofCluster(t, end, name, admins))).refused(t, fmt.Sprintf("%q", name), ipam.ReasonUnauthenticated)
		w.send(t, show(ofCluster(t, end, "mallory", admins, name))).
			refused(t, fmt.Sprintf("the group %q", name), ipam.ReasonUnauthenticated)
	}
	w.send(t, show(ofCluster(t, end, "J\u00fcrgen \u738b", admins))).done(t, "a name that can be printed")
}

// Certificates that are nobody's are not verified without end. One that was good a moment ago is taken.
func floodOfCertificates(t *testing.T, w *world) {
	const source = "127.0.0.16"
	good := show(ofCluster(t, time.Now().Add(time.Hour), "admin", admins))
	good.source = source
	w.send(t, good).done(t, "an administrator before")
	foreign := newIssuer(t)
	k := w.keep(t, source)
	for try := 0; ; try++ { // what tokens have used up comes back while a certificate is made
		if !flood(5000, func(i int) int { return k.send(t.Context(), list(fmt.Sprintf("token-%d-%d", try, i))) }) {
			t.Fatal("5,000 tokens are looked up")
		}
		a := show(foreign.issue(t, templateOf("admin", admins)))
		a.source = source
		h := w.send(t, a)
		if h.Reason == ipam.ReasonTooManyRequests {
			break
		}
		if h.refused(t, "a certificate", ipam.ReasonUnauthenticated); try == 50 {
			t.Fatal("each certificate is verified")
		}
	}
	w.send(t, good).done(t, "an administrator meanwhile")
}
