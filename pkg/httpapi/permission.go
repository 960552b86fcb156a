package httpapi

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
