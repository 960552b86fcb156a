package port

import (
	"bytes"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// copies bounds the texts of a page that are being sent to readers at the same time, for each kind of request.
const copies = 4

// Page is a page that is made again for its readers and kept in memory until the slowest of them has it. Usually each
// reader gets a text that was begun after the request came. If slow readers hold the largest number of texts, the
// youngest text is sent again: memory stays bounded for any number of readers, and every reader gets an answer.
type Page struct {
	// Make writes the page.
	Make http.Handler
	// Kind returns the kind of a request. Requests with different answers must be of different kinds, and there must be
	// few kinds.
	Kind func(*http.Request) string

	turn chan struct{} // has room for the goroutine that makes a text or looks for one
	by   map[string][]*text
}

// text is the content of a page at one time.
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
		return // the reader is gone
	}
	defer p.giveBack(kind, t)
	out := http.NewResponseController(w)
	_ = out.SetWriteDeadline(time.Now().Add(readPage)) // fails if the connection is gone, and so does Write
	maps.Copy(w.Header(), t.header)
	w.Header().Set("Content-Length", strconv.Itoa(t.Len()))
	w.WriteHeader(t.status)
	_, _ = w.Write(t.Bytes()) // a reader that is gone needs no page
	_ = out.Flush()           // before the text is released
}

// take returns a text for a request that came at a time; nil if the request has ended.
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

// giveBack releases a text that has no more readers.
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

// WriteHeader stores the status of the answer.
func (t *text) WriteHeader(status int) { t.status = status }
