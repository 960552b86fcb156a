package ui

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/view"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/serving/port"
)

// Server serves the pages. Each visitor sees only objects that they may read.
type Server struct {
	// Prometheus has the trends of the pools; may be nil.
	Prometheus *view.Prometheus

	app   *app.App
	door  door
	kinds *kinds
	texts map[string]*texts // by language
	// origin is the origin in browsers if a proxy has another name; may be empty.
	origin string
	// context ends with the server.
	context context.Context // for visitors, who outlive the request that created them
	stop    func()
	// viewers counts the streams of all visitors, busy the followed pages that are made, or were made just now.
	viewers, busy atomic.Int64
	// making holds the followed page that is made.
	making chan struct{}
	recent recent
}

// Local is a server for the user of the kubeconfig, on their own machine.
type Local struct {
	*Server
	guard *guard
}

// New returns a server for this call of the program. again is called with the token of a new link if somebody uses a
// link a second time.
func New(s *app.App, again func(token string)) (*Local, error) {
	u, err := newServer(s)
	if err != nil {
		return nil, err
	}
	g := newGuard(again)
	u.door = &local{u, g, u.newVisitor(s, "", time.Time{})}
	return &Local{u, g}, nil
}

func newServer(s *app.App) (*Server, error) {
	if _, err := s.Connect(); err != nil { // once, before concurrent requests
		return nil, err
	}
	u := &Server{app: s, texts: map[string]*texts{}, kinds: newKinds(), making: make(chan struct{}, 1),
		recent: newRecent()}
	u.context, u.stop = context.WithCancel(context.Background())
	for _, lang := range languages() {
		t, err := newTexts(s, lang)
		if err != nil {
			return nil, err
		}
		u.texts[lang] = t
	}
	return u, nil
}

// Token returns the token of the link for logging in.
func (s *Local) Token() string { return s.guard.token }

// Link returns the path of a link that logs in and continues to a page.
func Link(token, to string) string {
	return "/login?" + url.Values{"token": {token}, "to": {to}}.Encode()
}

// Handler returns the pages.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	for pattern, k := range s.kinds.by {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { s.page(w, r, k) })
	}
	s.door.routes(mux)
	mux.HandleFunc("/events", func(w http.ResponseWriter, r *http.Request) { visitorOf(r).live.events(w, r) })
	mux.HandleFunc("/static/{name}", static)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.refuse(w, r, http.StatusNotFound, "There is no such page", "")
	})
	protection := http.NewCrossOriginProtection()
	if s.origin != "" {
		_ = protection.AddTrustedOrigin(s.origin) // it was read as a URL
	}
	return protection.Handler(s.guarded(compressed(mux)))
}

const (
	// mostConnections bounds the connections of all viewers.
	mostConnections = 512
	// header bounds the header of a request in bytes. The longest is the request for events, which lists the followed
	// pages.
	header = 32 << 10
	// readTime is the time limit for writing a page. A page of a large pool takes seconds to begin.
	readTime = 2 * time.Minute
)

// Serve answers requests until the context ends.
func (s *Server) Serve(ctx context.Context, inner net.Listener) error {
	return s.serve(ctx, inner, nil)
}

// serve answers requests until the context ends; by TLS unless config is nil.
func (s *Server) serve(ctx context.Context, inner net.Listener, config *tls.Config) error {
	defer s.stop()
	times := port.Times{Header: 5 * time.Second, Read: 10 * time.Second, Write: readTime, Idle: 2 * time.Minute}
	return port.ServeWith(ctx, inner, s.Handler(), times, header,
		&port.Connections{OfSource: mostConnections, All: mostConnections, CountLoopback: true}, config)
}

// refuse answers with a page that names the problem and the next step.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, status int, what, hint string) {
	s.write(w, r, status, "refusal", map[string]any{"Status": status, "What": what, "Hint": hint})
}

// problem returns the text, hint and HTTP status of an error.
func problem(a *app.App, err error) (text, hint string, status int) {
	text, hint = a.Texts(err)
	f, _ := errors.AsType[*app.Failure](err)
	switch status = http.StatusBadGateway; {
	case apierrors.IsForbidden(err), f != nil && f.Reason == ipam.ReasonForbidden:
		status = http.StatusForbidden
	case apierrors.IsNotFound(err), f != nil && (f.Code == app.ExitUsage || f.Reason == app.ReasonAddressNotInSubnet ||
		strings.HasSuffix(string(f.Reason), "NotFound")):
		status = http.StatusNotFound
	}
	return text, a.Called(hint), status
}

// languages returns the languages of the pages. The first one is the default.
func languages() []string { return []string{"en", "zh"} }

// language chooses the language of an answer: the one chosen on a page, or the browser's.
func language(r *http.Request) string {
	asked := r.Header.Get("Accept-Language")
	if c, err := r.Cookie("lang"); err == nil {
		asked = c.Value
	}
	if chosen := r.URL.Query().Get("lang"); chosen != "" {
		asked = chosen
	}
	for tag := range strings.SplitSeq(asked, ",") {
		for _, lang := range languages() {
			if strings.HasPrefix(strings.ToLower(strings.TrimSpace(tag)), lang) {
				return lang
			}
		}
	}
	return languages()[0]
}

// URL returns the address of a page on a listener.
func URL(l net.Listener, path string) string { return fmt.Sprintf("http://%s%s", l.Addr(), path) }
