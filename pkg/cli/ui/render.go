package ui

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"hash/fnv"
	"html/template"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/follow"
	"github.com/bcsnet/bcsnet/pkg/cli/view"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
)

// builder makes the page for a request.
type builder func(ctx context.Context, q *request) (*page, error)

// request is one request for a page. Messages printed while it is made become warnings on the page.
type request struct {
	*app.App
	*http.Request
	texts *texts
	// prometheus has trends; may be nil.
	prometheus *view.Prometheus
	// missing has the rights for parts of the page that the visitor lacks.
	missing map[right]bool
}

// may reports whether the visitor has a right for a part of the page.
func (q *request) may(one right) bool { return !q.missing[one] }

// page has the sections of a page. Changed sections are sent again.
type page struct {
	Title string
	// Here is the page's entry in the navigation.
	Here     string
	Sections []section
	// Redirect is the path of another page to show instead; may be empty.
	Redirect string
	// Status is the HTTP status; 0 means OK. A slow page has begun with OK.
	Status int
	// Warnings say what could not be read.
	Warnings []string
	// Lacks are the missing rights for parts of the page.
	Lacks []lack
	// Watch selects the objects on which the page depends; empty if the page is not followed.
	Watch []follow.Source
	// versions has the versions of the lists that the page was made from. Later changes are not on the page.
	versions versions
}

// section is a part of a page. Browsers name their version by its hash.
type section struct {
	ID   string
	HTML template.HTML
	Hash string
}

// add renders a section by the template of its name. An empty section is also added, so that its text can come later.
func (q *request) add(p *page, id string, data any) error {
	var b bytes.Buffer
	if err := q.texts.pages.ExecuteTemplate(&b, id, data); err != nil {
		return err
	}
	text := humanize.VisibleLines(strings.TrimSpace(b.String()))
	h := fnv.New64a()
	_, _ = h.Write([]byte(text)) // a hash takes everything
	html := template.HTML(text)  //nolint:gosec // a template has made it
	p.Sections = append(p.Sections, section{id, html, strconv.FormatUint(h.Sum64(), 36)})
	return nil
}

// sections renders several sections in order from the same data.
func (q *request) sections(p *page, data any, ids ...string) error {
	for _, id := range ids {
		if err := q.add(p, id, data); err != nil {
			return err
		}
	}
	return nil
}

// build makes a page with the rights of a visitor.
func (s *Server) build(ctx context.Context, r *http.Request, k kind, v *visitor) (*page, error) {
	var said bytes.Buffer
	q := &request{App: v.app.Quiet(&said), Request: r, texts: s.texts[language(r)], prometheus: s.Prometheus}
	if lacks, _ := v.rights.lacking(ctx, q, k.needs); len(lacks) > 0 {
		return nil, lacks[0].refusal()
	}
	lacks, missing := v.rights.lacking(ctx, q, k.parts)
	q.missing = missing
	p, err := k.build(ctx, q)
	if err != nil {
		return nil, err
	}
	p.Lacks = lacks
	p.Watch = slices.DeleteFunc(p.Watch, func(w follow.Source) bool {
		return slices.ContainsFunc(lacks, func(l lack) bool { return l.Kind == w.Kind.Resource })
	})
	for line := range strings.Lines(said.String()) {
		p.Warnings = append(p.Warnings, strings.TrimPrefix(strings.TrimSpace(line), "! "))
	}
	if len(p.Warnings) > 0 || len(p.Lacks) > 0 || len(p.Watch) > 0 {
		err = q.add(p, "warnings", p)
	}
	return p, err
}

// layout has the values that the template needs beside those of the page.
type layout struct {
	*page
	Path, Query, Lang, Cluster string
	// User names who has logged in; empty on the user's own machine.
	User string
	// With returns the path of the page in another language.
	With map[string]string
	Data any
}

// layout returns what surrounds a page.
func (s *Server) layout(r *http.Request, data any) layout {
	l := layout{page: &page{}, Path: r.URL.RequestURI(), Query: r.URL.Query().Get("q"), Lang: language(r), Data: data,
		Cluster: s.app.Where(), With: map[string]string{}}
	if v := visitorOf(r); v != nil {
		l.User = v.name
	}
	if p, ok := data.(*page); ok {
		l.page = p
	}
	for _, other := range languages() {
		u, values := *r.URL, r.URL.Query()
		values.Set("lang", other)
		values.Del("token")
		u.RawQuery = values.Encode()
		l.With[other] = u.RequestURI()
	}
	return l
}

// write answers with a page made by a template.
func (s *Server) write(w http.ResponseWriter, r *http.Request, status int, name string, data any) {
	lang := language(r)
	var b bytes.Buffer
	if err := s.texts[lang].pages.ExecuteTemplate(&b, name, s.layout(r, data)); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	if r.URL.Query().Get("lang") != "" {
		http.SetCookie(w, &http.Cookie{ //nolint:gosec // it holds no secret
			Name: "lang", Value: lang, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode,
			Secure: s.door.secure(),
		})
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(humanize.VisibleLines(b.String()))) // fails only if the browser has gone
}

// compressed compresses the answers of h for clients that accept gzip, except the stream of events.
func compressed(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/events" || !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			h.ServeHTTP(w, r)
			return
		}
		z := &gzipped{ResponseWriter: w}
		defer z.close()
		h.ServeHTTP(z, r)
	})
}

// gzipped compresses an answer if it has a body.
type gzipped struct {
	http.ResponseWriter
	z *gzip.Writer
}

// WriteHeader writes the headers, for a compressed body unless there is none.
func (g *gzipped) WriteHeader(status int) {
	if status != http.StatusNotModified && status != http.StatusSeeOther {
		g.Header().Set("Content-Encoding", "gzip")
		g.Header().Del("Content-Length")
		g.z = gzip.NewWriter(g.ResponseWriter)
	}
	g.ResponseWriter.WriteHeader(status)
}

// Write writes a part of the body.
func (g *gzipped) Write(p []byte) (int, error) {
	if g.z == nil {
		g.WriteHeader(http.StatusOK)
	}
	return g.z.Write(p)
}

// FlushError sends what was written so far.
func (g *gzipped) FlushError() error {
	if g.z == nil {
		return nil
	}
	return errors.Join(g.z.Flush(), http.NewResponseController(g.ResponseWriter).Flush())
}

func (g *gzipped) close() {
	if g.z != nil {
		_ = g.z.Close() // the browser may have gone
	}
}
