package ui

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/cache"

	v1 "github.com/bcsnet/bcsnet/api/v1"
)

const (
	// mostRecent bounds the pages that are kept for viewers who have just loaded them, and recentFor the time.
	mostRecent, recentFor = 16, 10 * time.Second
)

// recent caches the pages that browsers have just loaded or received. A browser that then follows such a page does not
// need a second copy of it.
type recent struct{ pages *cache.LRUExpireCache }

func newRecent() recent { return recent{cache.NewLRUExpireCache(mostRecent)} }

// recently names a page of a visitor.
type recently struct {
	visitor *visitor
	page    string
}

func recentKey(v *visitor, r *http.Request) recently { return recently{v, key(r.URL.RequestURI(), r)} }

func (c recent) keep(v *visitor, r *http.Request, p *page) {
	if len(p.Watch) > 0 {
		c.pages.Add(recentKey(v, r), p, recentFor)
	}
}

// take returns the page of a request, if its visitor has it.
func (c recent) take(v *visitor, r *http.Request) (p *page, ok bool) {
	one, ok := c.pages.Get(recentKey(v, r))
	if !ok {
		return nil, false
	}
	return one.(*page), true
}

// read makes a page, and records from which versions on its objects are to be watched: those of scopes, or all of its
// kind if there are none.
func (s *Server) read(ctx context.Context, r *http.Request, k kind, v *visitor, scopes []scope) (*page, error) {
	if len(scopes) == 0 {
		scopes = k.scopes(r)
	}
	before := v.versions(ctx, scopes)
	p, err := s.build(ctx, r, k, v)
	if err == nil {
		p.versions = before
	}
	return p, err
}

// scopes returns the objects of our kinds that a page may show.
func (k kind) scopes(r *http.Request) (out []scope) {
	for _, one := range slices.Concat(k.needs, k.parts) {
		if one.kind.Group == v1.GroupVersion.Group && one.kind.Resource != v1.HistoryResource {
			out = append(out, scope{one.kind, r.PathValue(one.in)})
		}
	}
	return out
}

// noObject selects nothing, which the API server finds without a look at all objects. The list has a version all the
// same.
const noObject = "metadata.name=none"

// versions returns the present versions of scopes.
func (v *visitor) versions(ctx context.Context, scopes []scope) versions {
	out := versions{}
	c, err := v.app.Dynamic()
	if err != nil {
		return out
	}
	var mu sync.Mutex
	var asking sync.WaitGroup
	for _, one := range scopes {
		asking.Go(func() {
			version := ""
			some, err := c.Resource(one.GroupVersionResource).Namespace(one.namespace).
				List(ctx, metav1.ListOptions{FieldSelector: noObject, Limit: 1})
			if err == nil {
				version = some.GetResourceVersion()
			}
			mu.Lock()
			defer mu.Unlock()
			out[one] = version
		})
	}
	asking.Wait()
	return out
}
