package httpapi

import (
	"net/http"

	"github.com/bcsnet/bcsnet/pkg/httpapi/wire"
)

// route is one operation of the allocator.
type route struct {
	method, path, name string
	// query are the parameters that the operation knows.
	query []string
	// hasBody: the operation reads a JSON body.
	hasBody bool
	// forward: a follower has the leader answer.
	forward bool
	// access is who may ask.
	access permission
	// rows is how many rows a list may have at most; nil of what is no list.
	rows func(query string) int
	// handle returns the data and message of a success.
	handle func(r *http.Request, body []byte) (data any, message string, err error)
	// frees reports whether a release frees an address by what this replica knows; nil for what is never refused so.
	frees func(r *http.Request, body []byte) bool
}

// Operations that are named in the code beside their routes.
const (
	// collectNetwork is the operation whose body names all attachments of a host.
	collectNetwork = "collectNetwork"
	// galaxyRelease is galaxy's operation that releases addresses.
	galaxyRelease = "releaseIPs"
)

// adds reports whether it takes addresses: many may ask at once.
func (op route) adds() bool { return op.method == http.MethodPost && op.path == wire.Prefix }

// givesBack reports whether an operation gives addresses back. Such ones are always taken: an address that cannot be
// given back is lost to everybody.
func (op route) givesBack() bool {
	return op.method == http.MethodDelete || op.name == collectNetwork || op.name == galaxyRelease
}
