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

// Times bound how long a caller may take: to send the header of a request, to send all of it, to read the answer, and
// between two requests.
type Times struct{ Header, Read, Write, Idle time.Duration }

// Server returns an HTTP server with bounds. header is how many bytes the header of a request may have.
func Server(pages http.Handler, times Times, header int, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler: pages, ReadHeaderTimeout: times.Header, ReadTimeout: times.Read, WriteTimeout: times.Write,
		IdleTimeout: times.Idle, MaxHeaderBytes: header, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}

const (
	// ofSource and all bound the connections of a port with pages for monitoring and probes: a kubelet, a few scrapers
	// and people ask there. All of them together take some 16 MiB at most.
	ofSource, all = 64, 512
	// pageHeader is how many bytes the header of a request for a page may have.
	pageHeader = 8 << 10
	// sendBuffer is how much of an answer the kernel keeps for a slow reader, in bytes.
	sendBuffer = 32 << 10
	// readPage is how long a reader may take for a page.
	readPage = 10 * time.Second
)

// Pages returns the server of a port with pages for monitoring and probes, and the listener that it is to serve.
// Connections of this machine count, too.
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
	stop := context.AfterFunc(ctx, func() { _ = server.Close() }) // nobody waits for a page
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
		_ = buffered.SetWriteBuffer(sendBuffer) // without it the kernel keeps more
	}
	return l.connections.Take(c), nil
}
