package ui

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
)

// kind is a kind of page: its builder, the rights that it needs, and those that only parts of it need.
type kind struct {
	build        builder
	needs, parts []right
}

// kinds has the kinds of pages by path pattern.
type kinds struct {
	mux *http.ServeMux
	by  map[string]kind
}

func newKinds() *kinds {
	pools, addresses := ofPools(), ofAddresses()
	all := &kinds{mux: http.NewServeMux(), by: map[string]kind{
		"/{$}":            {overviewPage, []right{pools}, nil},
		"/network/{name}": {networkPage, []right{pools}, nil},
		"/pool/{name}":    {poolPage, []right{pools}, []right{addresses, ofEvents("")}},
		"/ip/{address}":   {addressPage, []right{pools, addresses}, nil},
		"/host/{name}":    {hostPage, []right{pools, addresses}, nil},
		"/namespace/{name}": {
			namespacePage, nil, []right{pools, ofNamespace("name"), addresses, ofClaims("name")},
		},
		"/claim/{namespace}/{name}": {
			claimPage, []right{ofClaim("namespace")}, []right{addresses, ofEvents("namespace")},
		},
		"/problems":              {problemsPage, nil, nil}, // reports missing rights itself
		"/why":                   {whyPage, nil, nil},      // so does this
		"/history/{kind}/{name}": {historyPage, []right{ofHistory(), addresses}, nil},
		"/search":                {searchPage, []right{pools, addresses}, nil},
	}}
	for pattern := range maps.Keys(all.by) {
		all.mux.HandleFunc(pattern, func(http.ResponseWriter, *http.Request) {})
	}
	return all
}

// find returns the kind of a page, and a request for it in the language of by.
func (k *kinds) find(page string, by *http.Request) (kind, *http.Request, error) {
	at, err := url.Parse(page)
	if err != nil || at.IsAbs() || at.Host != "" {
		return kind{}, nil, fmt.Errorf("%q is not a page", page)
	}
	r := &http.Request{Method: http.MethodGet, URL: at, Header: by.Header.Clone(), Host: by.Host}
	_, pattern := k.mux.Handler(r)
	found, ok := k.by[pattern]
	if !ok {
		return kind{}, nil, fmt.Errorf("%q is not a page", page)
	}
	k.mux.ServeHTTP(nowhere{}, r) // sets the path values
	return found, r, nil
}

// nowhere discards an answer.
type nowhere struct{}

func (nowhere) Header() http.Header         { return http.Header{} }
func (nowhere) Write(p []byte) (int, error) { return len(p), nil }
func (nowhere) WriteHeader(int)             {}
