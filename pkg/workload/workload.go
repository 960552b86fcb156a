package workload

// Workload is the owner of a pod: the Deployment, StatefulSet or similar object that creates it, or the pod itself if
// there is none.
type Workload struct {
	// Group and Kind, as in "apps" and "Deployment". The version is not part of the identity.
	Group, Kind string
	// Namespace is empty for kinds without one.
	Namespace, Name string
	// UID is empty if only a name is known.
	UID string
}

// String returns kind, namespace and name as in messages.
func (w Workload) String() string {
	if w.Namespace == "" {
		return w.Kind + " " + w.Name
	}
	return w.Kind + " " + w.Namespace + "/" + w.Name
}

// Owner is the controlling owner of an object, as its owner reference names it; zero for none.
type Owner struct {
	Group, Kind, Name, UID string
}
