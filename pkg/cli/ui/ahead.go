package ui

import (
	"bytes"
	"cmp"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
)

// ahead is the time after which the beginning of a slow page is sent, so that the browser shows that it comes.
const ahead = 500 * time.Millisecond

// page answers with a page.
func (s *Server) page(w http.ResponseWriter, r *http.Request, k kind) {
	begun := make(chan bool, 1)
	timer := time.AfterFunc(ahead, func() {
		s.write(w, r, http.StatusOK, "ahead", beginning(r))
		_ = http.NewResponseController(w).Flush() // fails only if the browser has gone
		begun <- true
	})
	var p *page
	var err error
	var late bool
	func() {
		defer func() { // also if it panics: the answer ends with this function
			if timer.Stop() {
				begun <- false
			}
			late = <-begun
		}()
		p, err = s.read(r.Context(), r, k, visitorOf(r), nil)
	}()
	if err == nil {
		s.recent.keep(visitorOf(r), r, p)
	}
	switch {
	case late:
		s.rest(w, r, p, err)
	case apierrors.IsUnauthorized(err) && visitorOf(r).name != "": // the token has ended
		s.door.outside(w, r)
	case err != nil:
		text, hint, status := problem(s.app, err)
		s.refuse(w, r, status, text, hint)
	case p.Redirect != "":
		http.Redirect(w, r, p.Redirect, http.StatusSeeOther)
	default:
		s.write(w, r, cmp.Or(p.Status, http.StatusOK), "page", p)
	}
}

// beginning returns what is known of a page before it is made.
func beginning(r *http.Request) *page {
	kind, name, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	p := map[string]page{
		"": {Title: "Pools", Here: "pools"}, "network": {Here: "pools"}, "pool": {Here: "pools"},
		"problems": {Title: "Problems", Here: "problems"}, "why": {Title: "Why", Here: "why"},
		"search": {Title: "Search"},
	}[kind]
	if p.Title == "" {
		p.Title = name
	}
	return &p
}

// rest answers with what follows a beginning: the page, or why there is none.
func (s *Server) rest(w http.ResponseWriter, r *http.Request, p *page, err error) {
	name, data := "rest", any(p)
	switch {
	case err != nil:
		text, hint, _ := problem(s.app, err)
		name, data = "refused", map[string]any{"What": text, "Hint": hint}
	case p.Redirect != "":
		name, data = "onward", map[string]any{"To": p.Redirect}
	}
	var b bytes.Buffer
	if err := s.texts[language(r)].pages.ExecuteTemplate(&b, name, s.layout(r, data)); err != nil {
		s.app.Say.Warn("%s: %v", r.URL.Path, err)
		return
	}
	_, _ = w.Write([]byte(humanize.VisibleLines(b.String()))) // fails only if the browser has gone
}
