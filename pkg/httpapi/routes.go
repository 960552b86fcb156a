package httpapi

import (
	"net/http"
	"slices"

	"github.com/bcsnet/bcsnet/pkg/httpapi/wire"
)

// route is one operation of the allocator.
type route struct {
	method, path, name string
	// query are the query parameters of the operation.
	query []string
	// hasBody reports whether the operation reads a JSON body.
	hasBody bool
	// forward reports whether a follower forwards it to the leader.
	forward bool
	// access says who may use it.
	access permission
	// rows returns the largest number of rows in a list; nil if the operation is not a list.
	rows func(query string) int
	// handle returns the data and message of a success.
	handle func(r *http.Request, body []byte) (data any, message string, err error)
	// frees reports whether, by what this replica knows, a release frees an address; nil for operations that are never
	// refused for that.
	frees func(r *http.Request, body []byte) bool
}

// Operations that the code names outside their routes.
const (
	// collectNetwork is the operation whose body names all attachments of a host.
	collectNetwork = "collectNetwork"
	// galaxyRelease is galaxy's operation that releases addresses.
	galaxyRelease = "releaseIPs"
)

// adds reports whether an operation takes addresses. Many callers may use such an operation at the same time.
func (op route) adds() bool { return op.method == http.MethodPost && op.path == wire.Prefix }

// givesBack reports whether an operation gives addresses back. Such operations are always accepted: an address that
// cannot be given back is lost to everybody.
func (op route) givesBack() bool {
	return op.method == http.MethodDelete || op.name == collectNetwork || op.name == galaxyRelease
}

// permission says who may use a route.
type permission struct {
	// verb and resource are the attributes of the RBAC question. The resource belongs to our API group; most of these
	// resources have no objects.
	verb, resource string
	// by limits the requests of a caller that may act only for certain hosts.
	by scope
	// where selects the namespace of the RBAC question.
	where place
}

// place selects the namespace of an RBAC question.
type place int

const (
	// everywhere: all namespaces, whatever path, query and body name.
	everywhere place = iota
	// ofSubject: the namespace that the request names. Nothing of other namespaces may be shown or changed.
	ofSubject
	// ofController: the controller's namespace.
	ofController
)

// Resources of permissions.
const (
	allocations  = "allocations"
	hostReleases = "hostreleases"
	conflicts    = "conflicts"
	collections  = "gc"
	claims       = "bcsnetipclaims"
	// placements is the resource for questions of schedulers.
	placements = "placements"
)

// scope limits the requests of a caller that may act only for certain hosts.
type scope int

const (
	// byNobody: no requests.
	byNobody scope = iota
	// byHost: requests that name one of the hosts.
	byHost
	// byLease: any request, but only leases of the hosts are shown and changed.
	byLease
)

// routes returns the operations of the allocator. The routes of galaxy and of the scheduler are in their own files.
func (s *Service) routes() []route {
	return []route{
		{
			http.MethodPost, wire.Prefix, "allocate", nil, true, true, permission{"create", allocations, byHost,
				ofSubject}, nil,
			s.allocate, nil,
		},
		{
			http.MethodDelete, wire.Prefix, "release", nil, true, true,
			permission{"delete", allocations, byHost, ofSubject}, nil, s.release, s.releaseFrees,
		},
		{
			http.MethodDelete, wire.Prefix + "/host/{host}", "releaseHost", nil, false, true,
			permission{"create", hostReleases, byHost, everywhere}, nil, s.releaseHost, nil,
		},
		{
			http.MethodDelete, wire.Prefix + "/ip/{address}", "releaseAddress", nil, true, true,
			permission{"delete", allocations, byLease, everywhere}, nil, s.releaseAddress, s.releaseAddressFrees,
		},
		{
			http.MethodPost, wire.Prefix + "/gc", collectNetwork, nil, true, true,
			permission{"create", collections, byHost, everywhere}, nil, s.collectNetwork, nil,
		},
		{
			http.MethodPost, wire.Prefix + "/ip/{address}/conflict", "reportConflict", nil, true, true,
			permission{"create", conflicts, byLease, everywhere}, nil, s.reportConflict, nil,
		},
		{
			http.MethodGet, wire.Prefix, "list", slices.Concat(filters(), paging()), false, false,
			permission{"list", allocations, byLease, ofSubject}, pageRows, s.list, nil,
		},
		{
			http.MethodGet, wire.Prefix + "/container/{container}", "inspectContainer",
			slices.Concat([]string{"ifName"}, paging()),
			false, false, permission{"list", allocations, byLease, everywhere}, nil, s.inspectContainer, nil,
		},
		{
			http.MethodGet, wire.Prefix + "/pod/{namespace}/{pod}", "inspectPod", paging(), false, false,
			permission{"list", allocations, byLease, ofSubject}, pageRows, s.inspectPod, nil,
		},
		{
			http.MethodGet, wire.Prefix + "/host/{host}", "inspectHost", paging(), false, false,
			permission{"list", allocations, byHost, everywhere}, pageRows, s.inspectHost, nil,
		},
		{
			http.MethodGet, wire.Prefix + "/pool/{pool}", "inspectPool", paging(), false, false,
			permission{"list", allocations, byLease, everywhere}, pageRows, s.inspectPool, nil,
		},
		{
			http.MethodGet, wire.Prefix + "/ip/{address}", "inspectAddress", nil, false, false,
			permission{"get", allocations, byNobody, everywhere}, nil, s.inspectAddress, nil,
		},
	}
}
