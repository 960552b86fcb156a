package ui

import (
	"context"
	"net/http"
	"time"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
)

// visitor is a user of the pages: the user of the kubeconfig, or in a cluster a user who has logged in. All pages are
// read with their rights.
type visitor struct {
	app    *app.App
	rights rights
	live   *live
	// name is the user's name at the API server; empty for the user of the kubeconfig.
	name string
}

// forever is longer than any server runs.
const forever = 100 * 365 * 24 * time.Hour

// newVisitor returns a visitor whose reads go through as, until a time. The zero time means as long as the server runs.
func (s *Server) newVisitor(as *app.App, name string, until time.Time) *visitor {
	if until.IsZero() {
		until = time.Now().Add(forever)
	}
	ctx, stop := context.WithDeadline(s.context, until)
	v := &visitor{app: as, rights: newRights(), name: name}
	v.live = &live{server: s, visitor: v, context: ctx, stop: stop, topics: map[string]*topic{}}
	return v
}

// door recognizes visitors and lets them log in.
type door interface {
	// admits reports whether the header Host of a request names this server.
	admits(host string) bool
	// visitor returns the visitor of a request; nil if they have not logged in.
	visitor(r *http.Request) *visitor
	// posts reports whether a path accepts POST, for login or logout.
	posts(path string) bool
	// routes adds the paths for login and logout.
	routes(mux *http.ServeMux)
	// public reports whether a path needs no login.
	public(path string) bool
	// outside answers a client that has not logged in.
	outside(w http.ResponseWriter, r *http.Request)
	// secure reports whether the pages are served by HTTPS, so that cookies are limited to it.
	secure() bool
}

// visiting is the context key of the visitor.
type visiting struct{}

// visitorOf returns the visitor of a request; nil if there is none.
func visitorOf(r *http.Request) *visitor {
	v, _ := r.Context().Value(visiting{}).(*visitor)
	return v
}
