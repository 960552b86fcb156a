package ui

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

const (
	// mostViewers bounds the streams of a process, and mostPages the pages of one stream.
	mostViewers = 200
	mostPages   = 16
	// frameEvery is how often a page is sent at most. share is which part of the time making a page may take: one that
	// takes long is made less often.
	frameEvery = 250 * time.Millisecond
	share      = 10
	// slow is how long a reader may take for a frame.
	slow = 10 * time.Second
	// beat is how often a quiet stream says that it is there.
	beat = 15 * time.Second
)

// live has the pages that somebody follows. Each is made once, however many viewers it has.
type live struct {
	server *Server
	mux    *http.ServeMux
	builds map[string]builder
	// context ends with the server.
	context context.Context // of the topics, which outlive the request that began them
	stop    func()

	mu      sync.Mutex
	viewers int
	topics  map[string]*topic
}

func newLive(s *Server) *live {
	l := &live{server: s, mux: http.NewServeMux(), builds: map[string]builder{}, topics: map[string]*topic{}}
	ctx, cancel := context.WithCancel(context.Background())
	l.context, l.stop = ctx, cancel
	return l
}

// frame is a page as it was made last. One that could not be made says why.
type frame struct {
	sections []section
	problem  string
}

// changed returns the sections of a frame that a browser with some versions does not have, and all versions of it.
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
	due  map[string]*frame // the newest of each page that was not sent
}

// take notes a frame for a page. What was not sent before is left out.
func (v *viewer) take(page string, f *frame) {
	v.mu.Lock()
	v.due[page] = f
	v.mu.Unlock()
	select {
	case v.wake <- struct{}{}:
	default:
	}
}

// events answers with a stream of what changes on pages.
func (l *live) events(w http.ResponseWriter, r *http.Request) {
	pages, have := r.URL.Query()["page"], r.URL.Query()["have"]
	if len(pages) == 0 || len(pages) > mostPages || len(have) != len(pages) {
		http.Error(w, "name some pages, and the versions that you have", http.StatusBadRequest)
		return
	}
	l.mu.Lock()
	if l.viewers >= mostViewers {
		l.mu.Unlock()
		w.Header().Set("Retry-After", "30")
		http.Error(w, fmt.Sprintf("%d viewers follow pages here, and more would be slow for all; "+
			"pages can be loaded all the same", mostViewers), http.StatusServiceUnavailable)
		return
	}
	l.viewers++
	l.mu.Unlock()
	v := &viewer{wake: make(chan struct{}, 1), due: map[string]*frame{}}
	versions := map[string][]string{}
	defer func() {
		l.mu.Lock()
		l.viewers--
		l.mu.Unlock()
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
	_ = out.SetReadDeadline(time.Time{}) // that of the server is for requests; it fails if the connection has gone
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

// message writes a frame for a browser, and notes the versions that the browser has from then on.
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

// serves registers what makes the pages of a pattern, so that they can be followed.
func (l *live) serves(pattern string, build builder) {
	l.builds[pattern] = build
	l.mux.HandleFunc(pattern, func(http.ResponseWriter, *http.Request) {})
}

// find returns what makes a page, and the request for it, with the language of who asks.
func (l *live) find(page string, by *http.Request) (builder, *http.Request, error) {
	at, err := url.Parse(page)
	if err != nil || at.IsAbs() || at.Host != "" {
		return nil, nil, fmt.Errorf("%q is no page", page)
	}
	r := &http.Request{Method: http.MethodGet, URL: at, Header: by.Header.Clone(), Host: by.Host}
	_, pattern := l.mux.Handler(r)
	build := l.builds[pattern]
	if build == nil {
		return nil, nil, fmt.Errorf("%q is no page", page)
	}
	l.mux.ServeHTTP(nowhere{}, r) // which sets the values of the path
	return build, r, nil
}

// nowhere takes an answer that nobody gets.
type nowhere struct{}

func (nowhere) Header() http.Header         { return http.Header{} }
func (nowhere) Write(p []byte) (int, error) { return len(p), nil }
func (nowhere) WriteHeader(int)             {}
