package client

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"time"
)

const (
	// dialTimeout bounds the time in which one replica must accept a connection, and then that of its TLS handshake:
	// the next replica may work.
	dialTimeout = 2 * time.Second
	// maxHeader bounds the header of an answer, in octets.
	maxHeader = 64 << 10
)

// exchange sends one request over a connection of its own. The caller must call end after it has read the answer.
//
// A process that asks once gains nothing from the pool, the proxies and the HTTP/2 of an http.Transport.
func (a Access) exchange(r *http.Request) (_ *http.Response, end func(), err error) {
	conn, err := a.dial(r)
	if err != nil {
		return nil, nil, err
	}
	ctx := r.Context()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	end = func() { stop(); _ = conn.Close() }
	r.Close = true
	// A replica may answer before it has read all. A broken connection also ends the reading.
	go func() { _ = r.Write(conn) }()
	from := &io.LimitedReader{R: reader{ctx, conn}, N: maxHeader}
	resp, err := http.ReadResponse(bufio.NewReader(from), r)
	if err != nil {
		end()
		return nil, nil, err
	}
	from.N = math.MaxInt64 // who reads the body bounds it
	return resp, end, nil
}

// reader reads from a connection. Its error is that of the context if the context has ended.
type reader struct {
	ctx  context.Context //nolint:containedctx // an io.Reader gets none
	conn net.Conn
}

func (r reader) Read(p []byte) (int, error) {
	n, err := r.conn.Read(p)
	if err != nil && r.ctx.Err() != nil {
		err = r.ctx.Err()
	}
	return n, err
}

// dial connects to the replica of a request.
func (a Access) dial(r *http.Request) (net.Conn, error) {
	port := "80"
	if r.URL.Scheme == "https" {
		port = "443"
	}
	dialer := net.Dialer{Timeout: dialTimeout}
	address := net.JoinHostPort(r.URL.Hostname(), cmp.Or(r.URL.Port(), port))
	conn, err := dialer.DialContext(r.Context(), "tcp", address)
	if err != nil || r.URL.Scheme != "https" {
		return conn, err
	}
	config := a.TLS.Clone()
	config.ServerName = cmp.Or(config.ServerName, r.URL.Hostname())
	ctx, stop := context.WithTimeout(r.Context(), dialTimeout)
	defer stop()
	secure := tls.Client(conn, config)
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("TLS handshake: %w", err)
	}
	return secure, nil
}
