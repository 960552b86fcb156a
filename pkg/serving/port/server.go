package port

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// Times limits the time of a caller: for the header of a request, for the whole request, for reading the answer, and
// between two requests.
type Times struct{ Header, Read, Write, Idle time.Duration }

// Server returns an HTTP server with limits. header is the largest size of a request's header, in bytes.
func Server(pages http.Handler, times Times, header int, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler: pages, ReadHeaderTimeout: times.Header, ReadTimeout: times.Read, WriteTimeout: times.Write,
		IdleTimeout: times.Idle, MaxHeaderBytes: header, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}

const (
	// ofSource and all limit the connections of a port with pages for monitoring and probes, whose callers are a
	// kubelet, a few scrapers and people. All connections together take at most some 16 MiB.
	ofSource, all = 64, 512
	// pageHeader is the largest size of the header of a request for a page, in bytes.
	pageHeader = 8 << 10
	// sendBuffer is the part of an answer that the kernel buffers for a slow reader, in bytes.
	sendBuffer = 32 << 10
	// readPage bounds the time in which a reader must read a page.
	readPage = 10 * time.Second
)

// Pages returns the server of a port with pages for monitoring and probes, and its listener. Connections of this
// machine count, too.
func Pages(inner net.Listener, pages http.Handler, log *slog.Logger) (*http.Server, net.Listener) {
	server := Server(pages, Times{5 * time.Second, readPage, readPage, 2 * time.Minute}, pageHeader, log)
	return server, &listener{inner, &Connections{OfSource: ofSource, All: all, CountLoopback: true, Log: log}}
}

// Serve serves pages as Pages does, until the context ends.
func Serve(ctx context.Context, inner net.Listener, pages http.Handler, log *slog.Logger) error {
	server, bounded := Pages(inner, pages, log)
	return serve(ctx, server, bounded)
}

// ServeWith serves pages with other bounds than those of Pages, by TLS unless config is nil, until the context ends.
func ServeWith(
	ctx context.Context, inner net.Listener, pages http.Handler, times Times, header int, bound *Connections,
	config *tls.Config,
) error {
	var bounded net.Listener = &listener{inner, bound}
	if config != nil {
		bounded = tls.NewListener(bounded, config)
	}
	return serve(ctx, Server(pages, times, header, slog.New(slog.DiscardHandler)), bounded)
}

func serve(ctx context.Context, server *http.Server, bounded net.Listener) error {
	stop := context.AfterFunc(ctx, func() { _ = server.Close() }) // no page needs a graceful end
	defer stop()
	if err := server.Serve(bounded); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// listener counts the connections that it accepts.
type listener struct {
	net.Listener
	connections *Connections
}

// Accept returns the next connection.
func (l *listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	if buffered, ok := c.(interface{ SetWriteBuffer(bytes int) error }); ok {
		_ = buffered.SetWriteBuffer(sendBuffer) // otherwise the kernel buffers more
	}
	return l.connections.Take(c), nil
}
