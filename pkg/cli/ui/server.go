package ui

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/serving/port"
)

// Server serves the pages with the rights of one user: those of the kubeconfig.
type Server struct {
	app   *app.App
	guard *guard
	live  *live
	texts map[string]*texts // by language
}

// New returns the server of a call of the program. again is told the token of a new link, if the first was used twice.
func New(s *app.App, again func(token string)) (*Server, error) {
	if _, err := s.Connect(); err != nil { // once, before requests come side by side
		return nil, err
	}
	u := &Server{app: s, guard: newGuard(again), texts: map[string]*texts{}}
	for _, lang := range languages() {
		t, err := newTexts(s, lang)
		if err != nil {
			return nil, err
		}
		u.texts[lang] = t
	}
	u.live = newLive(u)
	return u, nil
}

// Token returns the token of the link that lets somebody in.
func (s *Server) Token() string { return s.guard.token }

// Link returns the path of a link that lets somebody in and leads to a page.
func Link(token, to string) string {
	return "/login?" + url.Values{"token": {token}, "to": {to}}.Encode()
}

// Handler returns the pages.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	for pattern, build := range map[string]builder{
		"/{$}": overviewPage, "/pool/{name}": poolPage, "/ip/{address}": addressPage, "/host/{name}": hostPage,
		"/namespace/{name}": namespacePage, "/claim/{namespace}/{name}": claimPage, "/network/{name}": networkPage,
		"/problems": problemsPage, "/why": whyPage, "/search": searchPage,
		"/history/{kind}/{name}": historyPage,
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { s.page(w, r, build) })
		s.live.serves(pattern, build)
	}
	mux.HandleFunc("/login", s.login)
	mux.HandleFunc("/events", s.live.events)
	mux.HandleFunc("/static/{name}", static)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.refuse(w, r, http.StatusNotFound, "There is no such page", "")
	})
	return http.NewCrossOriginProtection().Handler(s.guarded(compressed(mux)))
}

const (
	// mostConnections bounds the connections of all viewers.
	mostConnections = 512
	// header bounds the header of a request in bytes. An address with the pages that a browser follows is the longest.
	header = 32 << 10
	// readTime is how long a reader may take for a page. A page of a large pool takes seconds until it begins.
	readTime = 2 * time.Minute
)

// Serve answers requests until the context ends.
func (s *Server) Serve(ctx context.Context, inner net.Listener) error {
	defer s.live.stop()
	times := port.Times{Header: 5 * time.Second, Read: 10 * time.Second, Write: readTime, Idle: 2 * time.Minute}
	return port.ServeWith(ctx, inner, s.Handler(), times, header,
		&port.Connections{OfSource: mostConnections, All: mostConnections, CountLoopback: true})
}

// page answers with a page.
func (s *Server) page(w http.ResponseWriter, r *http.Request, build builder) {
	p, err := s.build(r.Context(), r, build)
	switch {
	case err != nil:
		text, hint, status := s.problem(err)
		s.refuse(w, r, status, text, hint)
	case p.Redirect != "":
		http.Redirect(w, r, p.Redirect, http.StatusSeeOther)
	default:
		s.write(w, r, http.StatusOK, "page", p)
	}
}

// refuse answers with a page that says what is wrong, and what to do.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, status int, what, hint string) {
	s.write(w, r, status, "refusal", map[string]any{"Status": status, "What": what, "Hint": hint})
}

// problem puts an error into words, and finds the status for it.
func (s *Server) problem(err error) (text, hint string, status int) {
	text, hint = s.app.Texts(err)
	f, _ := errors.AsType[*app.Failure](err)
	switch status = http.StatusBadGateway; {
	case apierrors.IsForbidden(err):
		status = http.StatusForbidden
	case apierrors.IsNotFound(err), f != nil && (f.Code == app.ExitUsage || f.Reason == app.ReasonAddressNotInSubnet ||
		strings.HasSuffix(string(f.Reason), "NotFound")):
		status = http.StatusNotFound
	}
	return text, s.app.Called(hint), status
}

// languages returns the languages of the pages, the first for who asks for none of them.
func languages() []string { return []string{"en", "zh"} }

// language chooses the language of an answer: the one that was chosen on a page, or else the browser's.
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
