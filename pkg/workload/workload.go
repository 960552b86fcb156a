package workload

// Workload is who a pod belongs to: the Deployment, StatefulSet or the like that makes it, or the pod itself when
// nothing does.
type Workload struct {
	// Group and Kind, as in "apps" and "Deployment". The version is none of its identity.
	Group, Kind string
	// Namespace is empty for kinds without one.
	Namespace, Name string
	// UID is empty where only a name is known.
	UID string
}

// String formats kind, namespace and name as messages have them.
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
