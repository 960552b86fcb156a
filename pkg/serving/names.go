package serving

// serviceName is the Service of the controller.
const serviceName = "bcsnet-controller"

// Names are the names in the certificates of replicas.
type Names struct {
	// Namespace is the controller's.
	Namespace string
}

// Service returns the name by which clients know any replica, whatever IP they dial.
func (n Names) Service() string { return serviceName + "." + n.Namespace + ".svc" }

// Replica returns the name by which replicas know each other. It is in certificates of the own CA alone: who has one
// is a replica.
func (n Names) Replica() string { return "replica." + n.Service() }
