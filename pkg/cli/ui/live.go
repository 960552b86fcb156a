package ui

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"
)

const (
	// mostViewers bounds the streams of the process, mostOfVisitor those of one visitor, and mostPages the pages of one
	// stream.
	mostViewers   = 200
	mostOfVisitor = 50
	mostPages     = 16
	// frameEvery is the minimum interval between two versions of a page, atLeast the maximum one while objects change.
	// Between these, making all pages together takes 1/share of the processors' time: slow pages are made less often,
	// and all the less often the more pages change. The first change after a pause is shown at once.
	frameEvery, atLeast = 250 * time.Millisecond, 30 * time.Second
	share               = 50
	// turn is the time for which a page waits while another one is made.
	turn = 2 * time.Second
	// mostTexts bounds the messages that are kept of a frame.
	mostTexts = 4
	// slow is the time limit for writing a frame.
	slow = 10 * time.Second
	// retry is the interval between attempts to make a page that could not be made.
	retry = 5 * time.Second
	// beat is the interval of signs of life on a quiet stream.
	beat = 15 * time.Second
)

// live has the pages that a visitor follows. Each page is made once, however many of their tabs show it.
type live struct {
	server  *Server
	visitor *visitor
	// context ends with the visitor.
	context context.Context // for topics, which outlive the request that created them
	stop    func()

	mu      sync.Mutex
	viewers int
	topics  map[string]*topic
}

// frame is the latest version of a page, or the problem that prevented it.
type frame struct {
	sections []section
	problem  string

	mu sync.Mutex
	// texts has the messages for browsers, by the versions that these have.
	texts map[string][]byte
}

// versions names the versions of all sections of a frame.
func (f *frame) versions() string {
	var all []string
	for _, s := range f.sections {
		all = append(all, s.Hash)
	}
	return strings.Join(all, ".")
}

// same reports whether browsers with one frame need not get another one.
func (f *frame) same(other *frame) bool {
	return f.problem == other.problem && f.versions() == other.versions()
}

// changed returns the sections whose hash differs from have.
func (f *frame) changed(have string) []map[string]string {
	out, had := []map[string]string{}, strings.Split(have, ".")
	for i, s := range f.sections {
		if i >= len(had) || had[i] != s.Hash {
			out = append(out, map[string]string{"id": s.ID, "hash": s.Hash, "html": string(s.HTML)})
		}
	}
	return out
}

// message encodes a frame for browsers that have the versions in have. Most viewers of a page have the same versions.
func (f *frame) message(page, have string) []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	if text, ok := f.texts[have]; ok {
		return text
	}
	m := map[string]any{"page": page, "on": f.problem == ""}
	if f.problem != "" {
		m["problem"] = f.problem
	} else {
		m["sections"], m["versions"] = f.changed(have), f.versions()
	}
	text, err := json.Marshal(m)
	if err != nil {
		text = []byte("{}") // texts can be marshalled
	}
	if f.texts == nil {
		f.texts = map[string][]byte{}
	}
	if len(f.texts) < mostTexts {
		f.texts[have] = text
	}
	return text
}

// viewer is one stream.
type viewer struct {
	wake chan struct{}
	mu   sync.Mutex
	due  map[string]*frame // the newest unsent frame of each page
}

// take queues a frame of a page in place of an unsent older one.
func (v *viewer) take(page string, f *frame) {
	v.mu.Lock()
	v.due[page] = f
	v.mu.Unlock()
	select {
	case v.wake <- struct{}{}:
	default:
	}
}

// events answers with a stream of the changes of pages.
func (l *live) events(w http.ResponseWriter, r *http.Request) {
	pages, have := r.URL.Query()["page"], r.URL.Query()["have"]
	if len(pages) == 0 || len(pages) > mostPages || len(have) != len(pages) {
		http.Error(w, "name some pages, and the versions that you have", http.StatusBadRequest)
		return
	}
	if !l.enter() {
		w.Header().Set("Retry-After", "30")
		http.Error(w, fmt.Sprintf("%d viewers follow pages here, or you follow %d, and more would be slow for all; "+
			"pages can be loaded all the same", mostViewers, mostOfVisitor), http.StatusServiceUnavailable)
		return
	}
	v := &viewer{wake: make(chan struct{}, 1), due: map[string]*frame{}}
	versions := map[string]string{} // that the browser has, by page
	defer func() {
		l.exit()
		for page := range versions {
			l.leave(page, v, r)
		}
	}()
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	for i, page := range pages {
		if _, twice := versions[page]; !twice {
			versions[page] = have[i]
			l.join(page, v, r)
		}
	}
	tick, next, wake := time.NewTicker(beat), time.NewTimer(0), v.wake
	defer tick.Stop()
	defer next.Stop()
	_ = out.SetReadDeadline(time.Time{}) // the server's deadline is for requests; fails only if the connection has gone
	for {
		select {
		case <-r.Context().Done():
			return
		case <-l.context.Done():
			return
		case <-tick.C:
			_ = out.SetWriteDeadline(time.Now().Add(slow)) // fails if the connection has gone: so does Write
			if _, err := fmt.Fprint(w, ": still here\n\n"); err != nil || out.Flush() != nil {
				return
			}
		case <-next.C:
			wake = v.wake
		case <-wake:
			wake = nil // until the next frames may be sent
			next.Reset(frameEvery)
			v.mu.Lock()
			due := v.due
			v.due = map[string]*frame{}
			v.mu.Unlock()
			for page, f := range due {
				_ = out.SetWriteDeadline(time.Now().Add(slow)) // as above
				text := f.message(page, versions[page])
				if f.problem == "" {
					versions[page] = f.versions()
				}
				if _, err := fmt.Fprintf(w, "event: page\ndata: %s\n\n", text); err != nil || out.Flush() != nil {
					return
				}
			}
		}
	}
}

// enter counts a stream. It returns false if there are too many.
func (l *live) enter() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.viewers >= mostOfVisitor {
		return false
	}
	if l.server.viewers.Add(1) > mostViewers {
		l.server.viewers.Add(-1)
		return false
	}
	l.viewers++
	return true
}

// exit takes a stream off.
func (l *live) exit() {
	l.server.viewers.Add(-1)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.viewers--
}
