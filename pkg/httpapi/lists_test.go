package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	galaxyrest "github.com/bcsnet/bcsnet/pkg/compat/galaxy/rest"
	"github.com/bcsnet/bcsnet/pkg/httpapi/wire"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// narrow has connections with buffers so small that an answer waits for its reader.
type narrow struct{ net.Listener }

func (n narrow) Accept() (net.Conn, error) {
	c, err := n.Listener.Accept()
	if err == nil {
		err = c.(*net.TCPConn).SetWriteBuffer(4 << 10)
	}
	return c, err
}

// listed is a service on a port, with so many leases.
func listed(t *testing.T, leases int) (f *fixture, addr string) {
	t.Helper()
	f = newFixture(t)
	a := netip.MustParseAddr("10.0.0.0")
	for i := range leases {
		f.Index.Feed.Watched(lease.Lease{Addr: a, Version: uint64(i + 1), Params: lease.Params{Pool: "p", Bits: 8},
			State: lease.Active, Holder: lease.Holder{
				Owner: strings.Repeat("x", 200) + strconv.Itoa(i), ContainerID: fmt.Sprintf("%0256x", i),
			}})
		a = a.Next()
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := f.Server()
	served := make(chan error, 1)
	go func() { served <- server.Serve(narrow{l}) }()
	t.Cleanup(func() {
		_ = server.Close()
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return f, l.Addr().String()
}

// idle waits until all room for lists is back, and then no list is made.
func (l *lists) idle(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := errors.Join(l.room.small.Acquire(ctx, answersSmall), l.room.large.Acquire(ctx,
		answersLarge)); err != nil {
		t.Fatal("room for lists is not given back")
	}
	if taken, waiting := l.turns.Busy(); taken+waiting > 0 {
		t.Errorf("%d lists are made and %d wait", taken, waiting)
	}
}

// TestListsToSlowReaders: who asks for the largest pages and does not read them is refused once they would take more
// memory than there is for them. Others get theirs, and what no list is does not wait.
func TestListsToSlowReaders(t *testing.T) {
	takesLong(t)
	f, addr := listed(t, 65536)
	page, _, _ := f.Index.Leases.Page(index.Filter{}, netip.Addr{}, maxPage)
	rows := make([]wire.Lease, len(page))
	for i, l := range page {
		rows[i] = wireLease(l)
	}
	text := len(marshal(rows))
	conns := make([]net.Conn, 12)
	began, refused := 0, 0
	for i := range conns {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		conns[i] = c
		_ = c.(*net.TCPConn).SetReadBuffer(4 << 10)
		if _, err := fmt.Fprintf(c, "GET %s?limit=%d HTTP/1.1\r\nHost: localhost\r\n\r\n", wire.Prefix,
			maxPage); err != nil {
			t.Fatal(err)
		}
		head := make([]byte, 512)
		n, err := io.ReadAtLeast(c, head, 300)
		if err != nil {
			t.Fatal(err)
		}
		switch head := string(head[:n]); {
		case strings.HasPrefix(head, "HTTP/1.1 200 "):
			began++
		case strings.HasPrefix(head, "HTTP/1.1 503 ") && strings.Contains(head, "\r\nRetry-After: ") &&
			strings.Contains(head, "\r\n"+headerReason+": Overloaded\r\n"):
			refused++
		default:
			t.Errorf("%s", head)
		}
	}
	t.Logf("%d answers of %d bytes began, %d were refused", began, text, refused)
	if refused == 0 || began < answersLarge/(maxPage*rowRoom) || began*text > answersLarge {
		t.Errorf("%d answers of %d bytes began, %d were refused", began, text, refused)
	}
	for path, want := range map[string]int{
		wire.Prefix: 200, wire.Prefix + "/pool/p?limit=100": 200, wire.Prefix + "/ip/10.0.0.7": 200, wire.Prefix +
			"/container/c": 200,
		"/v1/ip": 200, "/v1/ip?size=9999": 503,
	} {
		resp, err := http.Get("http://" + addr + path)
		if err != nil {
			t.Fatal(err)
		}
		if text, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != want || !json.Valid(text) {
			t.Errorf("%s: %d, %.300s, %v", path, resp.StatusCode, text, err)
		}
		_ = resp.Body.Close()
	}
	for _, c := range conns {
		_ = c.Close()
	}
	f.limits.lists.idle(t)
}

// TestManyLists: of many lists at once one is made at a time, each gets an answer or hears when to come again, and a
// caller who asks for one waits for his turn, not for all that another asks for.
func TestManyLists(t *testing.T) {
	takesLong(t)
	f, addr := listed(t, 65536)
	var most atomic.Int64
	ended := make(chan struct{})
	var watching, asking sync.WaitGroup
	watching.Go(func() {
		for {
			select {
			case <-ended:
				return
			default:
				taken, _ := f.limits.lists.turns.Busy()
				most.Store(max(most.Load(), int64(taken)))
			}
		}
	})
	var done, refused atomic.Int64
	for i := range 32 {
		asking.Go(func() {
			for j := range 2 {
				path := []string{wire.Prefix, wire.Prefix + "?limit=5000&status=Active", "/v1/ip", wire.Prefix +
					"/pod/n/p"}[(i+j)%4]
				resp, err := http.Get("http://" + addr + path)
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
				switch {
				case resp.StatusCode == http.StatusOK:
					done.Add(1)
				case resp.StatusCode == http.StatusServiceUnavailable && resp.Header.Get("Retry-After") != "" &&
					resp.Header.Get(headerReason) == string(ipam.ReasonOverloaded):
					refused.Add(1)
				default:
					t.Errorf("%s: %d", path, resp.StatusCode)
				}
			}
		})
	}
	asking.Wait()
	close(ended)
	watching.Wait()
	t.Logf("%d lists were answered and %d refused", done.Load(), refused.Load())
	if done.Load() == 0 || most.Load() != listsAtOnce {
		t.Errorf("%d lists were answered and %d refused, of which %d were made at the same time", done.Load(),
			refused.Load(), most.Load())
	}
	f.limits.lists.idle(t)
}

// TestRoomOfARow: the text of no row is longer than the room that is reserved for it, with each field as long as the
// CRD has it.
func TestRoomOfARow(t *testing.T) {
	long := func(n int) string { return strings.Repeat("x", n) }
	at := time.Date(2026, 1, 2, 3, 4, 5, 123456789, time.UTC)
	a := netip.MustParseAddr("2001:db8:ffff:ffff:ffff:ffff:ffff:ffff")
	row := wireLease(lease.Lease{
		Addr: a, State: lease.Available, Params: lease.Params{Pool: long(253), Bits: 128, Gateway: a}, Updated: at,
		Holder: lease.Holder{
			Host: a, ContainerID: long(256), IfName: long(15), PodName: long(253), Namespace: long(63),
			PodUID: long(128),
			Owner:  long(253),
		},
	})
	if n := len(marshal(row)) + 1; n > rowRoom {
		t.Errorf("a row of a list takes %d bytes", n)
	}
	of := galaxyrest.FloatingIP{IP: a.String(), Namespace: long(63), AppName: long(253), PodName: long(253),
		PoolName: long(253), Policy: 2, IsDeployment: true,
		AppType: long(63), UpdateTime: at.Format(time.RFC3339Nano), Status: "Succeeded", Releasable: true}
	text, err := json.MarshalIndent(galaxyrest.ListIPResponse{Content: []galaxyrest.FloatingIP{of}}, "", " ")
	if err != nil || len(text) > rowRoom {
		t.Errorf("a row of galaxy's list takes %d bytes, %v", len(text), err)
	}
}
