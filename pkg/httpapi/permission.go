package httpapi

// permission is who may use a route.
type permission struct {
	// verb and resource are what RBAC is asked about: resource is one of our API group, most of which have no objects.
	verb, resource string
	// by is what a caller may ask who acts for hosts alone.
	by scope
	// where says of which namespace RBAC is asked.
	where place
}

// place is of which namespace RBAC is asked.
type place int

const (
	// everywhere: of all, whatever path, query and body say of one.
	everywhere place = iota
	// ofSubject: of the one that the request names. Nothing of others may be shown or changed by it.
	ofSubject
	// ofController: of the controller's.
	ofController
)

// Resources of permissions.
const (
	allocations  = "allocations"
	hostReleases = "hostreleases"
	conflicts    = "conflicts"
	collections  = "gc"
	claims       = "bcsnetipclaims"
	// placements are questions of schedulers.
	placements = "placements"
)

// scope is what a caller may ask who acts for hosts alone.
type scope int

const (
	// byNobody: nothing.
	byNobody scope = iota
	// byHost: what names one of the hosts.
	byHost
	// byLease: anything, but only leases of the hosts are shown and changed.
	byLease
)
