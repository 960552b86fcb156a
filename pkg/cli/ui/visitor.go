package ui

import (
	"context"
	"net/http"
	"time"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
)

// visitor is who looks at pages: the user of the kubeconfig, or in a cluster somebody who has logged in. All that they
// are shown is read with their own rights.
type visitor struct {
	app    *app.App
	rights rights
	live   *live
	// name is what the API server calls them; empty for the user of the kubeconfig.
	name string
}

// forever is longer than a server runs.
const forever = 100 * 365 * 24 * time.Hour

// newVisitor returns somebody who reads as a call of the program does, until a time; zero for as long as the server is
// there.
func (s *Server) newVisitor(as *app.App, name string, until time.Time) *visitor {
	if until.IsZero() {
		until = time.Now().Add(forever)
	}
	ctx, stop := context.WithDeadline(s.context, until)
	v := &visitor{app: as, rights: newRights(), name: name}
	v.live = &live{server: s, visitor: v, context: ctx, stop: stop, topics: map[string]*topic{}}
	return v
}

// door knows who comes, and lets them in.
type door interface {
	// admits reports whether the header Host of a request names this server.
	admits(host string) bool
	// visitor returns who sends a request; nil for somebody who was not let in.
	visitor(r *http.Request) *visitor
	// posts reports whether a path takes POST, by which one comes in or goes out.
	posts(path string) bool
	// routes adds the paths by which one comes in and goes out.
	routes(mux *http.ServeMux)
	// public reports whether a path is for everybody.
	public(path string) bool
	// outside answers somebody who was not let in.
	outside(w http.ResponseWriter, r *http.Request)
	// secure reports whether the pages are served by HTTPS, which cookies are bound to then.
	secure() bool
}

// visiting names the visitor in the context of a request.
type visiting struct{}

// visitorOf returns who sends a request that was let in.
func visitorOf(r *http.Request) *visitor {
	v, _ := r.Context().Value(visiting{}).(*visitor)
	return v
}
