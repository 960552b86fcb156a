package serving

// serviceName is the name of the controller's Service.
const serviceName = "bcsnet-controller"

// Names has the names in the certificates of replicas.
type Names struct {
	// Namespace is the controller's namespace.
	Namespace string
}

// Service returns the name that clients verify for any replica, whatever IP they dial.
func (n Names) Service() string { return serviceName + "." + n.Namespace + ".svc" }

// Replica returns the name that replicas verify for each other. Only certificates of the own CA contain it: a caller
// with such a certificate is a replica.
func (n Names) Replica() string { return "replica." + n.Service() }
