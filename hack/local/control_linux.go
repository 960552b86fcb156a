package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/bcsnet/bcsnet/test/node/bed"
)

// serveControl lets others kill and start nodes, by POST /VERB/NODE on a socket, until the context ends.
func serveControl(ctx context.Context, o options, b *bed.Bed) error {
	listener, err := net.Listen("unix", o.file(controlSocket))
	if err != nil {
		return err
	}
	var one sync.Mutex // a node is killed or started by one caller at a time
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(
		func(w http.ResponseWriter, r *http.Request) {
			one.Lock()
			defer one.Unlock()
			if err := steerNode(r, b); err != nil {
				slog.Error("steer", "path", r.URL.Path, "err", err)
				http.Error(w, err.Error(), http.StatusConflict)
			}
		})}
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			slog.Error("serve", "err", err)
		}
	}()
	context.AfterFunc(ctx, func() { _ = server.Close() })
	return nil
}

func steerNode(r *http.Request, b *bed.Bed) error {
	for _, n := range b.Nodes() {
		switch r.Method + " " + r.URL.Path {
		case http.MethodPost + " /" + killVerb + "/" + n.Name:
			return n.Kill()
		case http.MethodPost + " /" + startVerb + "/" + n.Name:
			return n.Start(r.Context())
		}
	}
	return os.ErrNotExist
}
