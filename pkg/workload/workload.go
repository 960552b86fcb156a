package workload

// Workload is who a pod belongs to: the Deployment, StatefulSet or the like that makes it, or the pod itself when
// nothing does.
type Workload struct {
	// Group and Kind, as in "apps" and "Deployment". The version is none of its identity.
	Group, Kind     string
	Namespace, Name string
	UID             string
}

// String is kind, namespace and name, as messages have it.
func (w Workload) String() string { return w.Kind + " " + w.Namespace + "/" + w.Name }
