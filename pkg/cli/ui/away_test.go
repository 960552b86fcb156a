package ui

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/intercept"
)

// TestAway: while the API server is away, pages and streams say so; when it is back, what changed meanwhile comes by
// itself.
func TestAway(t *testing.T) {
	if err := manifests(); err != nil {
		t.Fatal(err)
	}
	proxy, err := intercept.NewProxy(strings.TrimPrefix(cluster.Config.Host, "https://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Close)
	cfg := rest.CopyConfig(cluster.Config)
	cfg.Host = "https://" + proxy.Addr()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := controlplane.WriteKubeconfigFor(cfg, path); err != nil {
		t.Fatal(err)
	}
	s := newSite(t, path)
	s.make(t, pool("blue", "10.1.0.0", 24, 253, 0, 0))
	s.get(t, s.viewer, Link(s.server.Token(), "/"))
	events := s.follow(t, "page=/&have=")
	events.until(t, "the list", func(m sent) bool { return m.On && has(m, "blue") })
	away := make(chan struct{})
	var cutting sync.WaitGroup
	cutting.Go(func() { // until the API server is back
		for {
			select {
			case <-away:
				return
			default:
				proxy.Reset()
			}
		}
	})
	proxy.KeepRequests(true)
	// The status is 502, unless the beginning was sent before.
	if status, text := s.get(t, s.viewer, "/"); !strings.Contains(text, "cannot be reached") {
		t.Errorf("without the API server: %d %s", status, text)
	}
	events.until(t, "that it is away", func(m sent) bool { return !m.On && strings.Contains(m.Problem, "cannot be reached") })
	s.make(t, pool("late", "10.2.0.0", 24, 253, 0, 0))
	close(away)
	cutting.Wait()
	proxy.KeepRequests(false)
	proxy.Reset() // those whose requests were kept back
	events.until(t, "what changed meanwhile", func(m sent) bool { return m.On && has(m, "late") })
}

// TestSlowReader: a stream that nobody reads is cut, so that it keeps no room.
func TestSlowReader(t *testing.T) {
	s := entered(t)
	s.make(t, pool("large", "10.16.0.0", 16, 65533, 0, 0))
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.at+"/events?page=/pool/large&have=", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range s.viewer.Jar.Cookies(r.URL) {
		r.AddCookie(c)
	}
	conn, err := net.Dial("tcp", r.URL.Host)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := errors.Join(conn.(*net.TCPConn).SetReadBuffer(4<<10), r.Write(conn)); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReaderSize(conn, 16).ReadString('\n'); err != nil || !strings.Contains(line, "200") {
		t.Fatalf("%q %v", line, err)
	}
	if n := s.server.viewers.Load(); n != 1 {
		t.Errorf("%d streams are counted", n)
	}
	for i := range 40 { // more than the buffers of the kernel take
		s.make(t, held(fmt.Sprintf("10.16.%d.20", i), "large", "10.0.0.11", fmt.Sprintf("shop/slow-%d", i)))
	}
	controlplane.Eventually(t, func() error {
		if n := s.server.viewers.Load(); n != 0 {
			return fmt.Errorf("%d streams are still there", n)
		}
		return nil
	})
	status, text := s.get(t, s.viewer, "/pool/large")
	if status != http.StatusOK || !strings.Contains(text, "shop") {
		t.Errorf("somebody else: %d", status)
	}
}

// TestManyChanges: of many changes a second a stream gets a few frames, and the last of them has all.
func TestManyChanges(t *testing.T) {
	s := entered(t)
	blue := pool("blue", "10.1.0.0", 24, 253, 1, 0)
	s.make(t, blue)
	events := s.follow(t, "page=/pool/blue&have=")
	events.until(t, "the pool", func(m sent) bool { return m.On })
	s.storm(t, 1000)
	frames := 0
	events.until(t, "the last change", func(m sent) bool { frames++; return has(m, "shop/storm-999") })
	if frames > 100 {
		t.Errorf("1000 changes came in %d frames", frames)
	}
}

// storm changes addresses of the pool blue so many times, several at once. The last change is the holder storm-N of
// 10.1.0.200.
func (s *site) storm(t *testing.T, changes int) {
	t.Helper()
	const writers = 8
	objects := make([]*v1.BCSNetIP, writers)
	for i := range objects {
		objects[i] = held(fmt.Sprintf("10.1.0.%d", 193+i), "blue", "10.0.0.11", "shop/storm")
		s.make(t, objects[i])
	}
	failed := make([]error, writers)
	var writing sync.WaitGroup
	for i, o := range objects {
		writing.Go(func() {
			for n := range changes / writers {
				o.Status.PodName = fmt.Sprintf("storm-%d", n)
				failed[i] = errors.Join(failed[i], s.Update(t.Context(), o))
			}
		})
	}
	writing.Wait()
	last := objects[writers-1]
	last.Status.PodName = fmt.Sprintf("storm-%d", changes-1)
	if err := errors.Join(errors.Join(failed...), s.Update(t.Context(), last)); err != nil {
		t.Fatal(err)
	}
}
