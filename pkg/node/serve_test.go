package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/bcsnet/bcsnet/test/controlplane"
)

// Whoever opens connections without end, and reads none of what they ask for, keeps few, and others are answered.
func TestPagesHaveBounds(t *testing.T) {
	const most = 64
	at, err := controlplane.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var ended sync.WaitGroup
	ended.Go(func() {
		err := serve(ctx, Options{HTTPBindAddress: at.String()}, func() error { return nil }, prometheus.NewRegistry(),
			slog.New(slog.DiscardHandler))
		if err != nil {
			t.Error(err)
		}
	})
	defer ended.Wait()
	defer cancel()
	page := func(path string) error {
		resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Get("http://" + at.String() + path)
		if err != nil {
			return err
		}
		if resp.StatusCode != http.StatusOK {
			return errors.New(resp.Status)
		}
		return resp.Body.Close()
	}
	controlplane.Eventually(t, func() error { return page("/readyz") })
	var conns []net.Conn
	dialer := &net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.2:0"))}
	for range 4 * most {
		c, err := dialer.DialContext(t.Context(), "tcp", at.String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })                                  // the port may have closed it
		_, _ = io.WriteString(c, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n") // it may be closed already
		conns = append(conns, c)
	}
	for _, path := range []string{"/metrics", "/healthz", "/readyz"} {
		if err := page(path); err != nil {
			t.Errorf("%s of somebody else: %v", path, err)
		}
	}
	controlplane.Eventually(t, func() error {
		open := 0
		for _, c := range conns {
			var timeout net.Error
			if err := c.SetReadDeadline(time.Now().Add(time.Millisecond)); err != nil {
				continue
			}
			if _, err := io.Copy(io.Discard, c); errors.As(err, &timeout) && timeout.Timeout() {
				open++
			}
		}
		if open > most {
			return fmt.Errorf("%d connections are kept", open)
		}
		return nil
	})
}
