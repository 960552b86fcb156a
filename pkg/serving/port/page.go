package port

import (
	"bytes"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// copies is how many texts of a page may be on their way to readers, for each kind of request.
const copies = 4

// Page is a page that is made anew for its readers and kept in memory until the slowest of them has it. Usually each
// reader gets a text that was begun after the request came. If slow readers hold as many texts as may be, the youngest
// text is sent again: however many readers there are and however slow, the texts take the same memory, and everybody is
// answered.
type Page struct {
	// Make writes the page.
	Make http.Handler
	// Kind tells requests apart whose answers differ. There must be few kinds.
	Kind func(*http.Request) string

	turn chan struct{} // has room for the one who makes a text or looks at texts
	by   map[string][]*text
}

// text is a page as it was at one time.
type text struct {
	bytes.Buffer
	header  http.Header
	status  int
	begun   time.Time
	readers int
}

// NewPage returns a Page.
func NewPage(page http.Handler, kind func(*http.Request) string) *Page {
	return &Page{Make: page, Kind: kind, turn: make(chan struct{}, 1), by: map[string][]*text{}}
}

// ServeHTTP sends the page.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	kind := p.Kind(r)
	t := p.take(r, kind, time.Now())
	if t == nil {
		return // the reader has gone
	}
	defer p.giveBack(kind, t)
	out := http.NewResponseController(w)
	_ = out.SetWriteDeadline(time.Now().Add(readPage)) // fails if the connection has gone: so does Write
	maps.Copy(w.Header(), t.header)
	w.Header().Set("Content-Length", strconv.Itoa(t.Len()))
	w.WriteHeader(t.status)
	_, _ = w.Write(t.Bytes()) // a reader who has gone needs no page
	_ = out.Flush()           // while the text counts
}

// take returns a text for a request that came at some time; nil if the request has ended.
func (p *Page) take(r *http.Request, kind string, came time.Time) *text {
	select {
	case p.turn <- struct{}{}:
	case <-r.Context().Done():
		return nil
	}
	defer func() { <-p.turn }()
	all := p.by[kind]
	n := len(all)
	if n > 0 && (n >= copies || all[n-1].begun.After(came)) {
		all[n-1].readers++
		return all[n-1]
	}
	t := &text{header: http.Header{}, status: http.StatusOK, begun: time.Now(), readers: 1}
	p.Make.ServeHTTP(t, r)
	p.by[kind] = append(all, t)
	return t
}

// giveBack forgets a text that nobody reads any more.
func (p *Page) giveBack(kind string, t *text) {
	p.turn <- struct{}{}
	defer func() { <-p.turn }()
	if t.readers--; t.readers > 0 {
		return
	}
	p.by[kind] = slices.DeleteFunc(p.by[kind], func(other *text) bool { return other == t })
}

// Header returns the header of the answer.
func (t *text) Header() http.Header { return t.header }

// WriteHeader keeps the status of the answer.
func (t *text) WriteHeader(status int) { t.status = status }
