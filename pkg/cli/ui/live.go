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
	// frameEvery is the minimum interval between two versions of a page. Making a page takes at most 1/share of the
	// time: slow pages are made less often.
	frameEvery = 250 * time.Millisecond
	share      = 10
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
}

// changed returns the sections whose hash differs from have, and all hashes of the frame.
func (f *frame) changed(have []string) (out []map[string]string, versions string) {
	var all []string
	for i, s := range f.sections {
		all = append(all, s.Hash)
		if i >= len(have) || have[i] != s.Hash {
			out = append(out, map[string]string{"id": s.ID, "hash": s.Hash, "html": string(s.HTML)})
		}
	}
	return out, strings.Join(all, ".")
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
	versions := map[string][]string{}
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
			versions[page] = strings.Split(have[i], ".")
			l.join(page, v, r)
		}
	}
	tick := time.NewTicker(beat)
	defer tick.Stop()
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
		case <-v.wake:
			v.mu.Lock()
			due := v.due
			v.due = map[string]*frame{}
			v.mu.Unlock()
			for page, f := range due {
				_ = out.SetWriteDeadline(time.Now().Add(slow)) // as above
				text := message(page, f, versions)
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

// message encodes a frame for a browser, and records the versions that the browser then has.
func message(page string, f *frame, versions map[string][]string) []byte {
	m := map[string]any{"page": page, "on": f.problem == ""}
	if f.problem != "" {
		m["problem"] = f.problem
	} else {
		sections, all := f.changed(versions[page])
		if sections == nil {
			sections = []map[string]string{}
		}
		versions[page] = strings.Split(all, ".")
		m["sections"], m["versions"] = sections, all
	}
	text, err := json.Marshal(m)
	if err != nil {
		return []byte("{}") // texts can be marshalled
	}
	return text
}
