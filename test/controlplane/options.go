package controlplane

import (
	"net/netip"
	"slices"
)

// Option changes what Start starts.
type Option func(*options)

type options struct {
	dataDir, logDir                    string
	address                            netip.Addr
	controllerManager, scheduler, kwok bool
	args                               map[string][]string
	extenders                          []map[string]any
}

// WithDataDir keeps etcd's data, keys and kubeconfigs in dir, and leaves it there at Stop. A start
// on the same directory continues with the objects of the last one, under new keys.
func WithDataDir(dir string) Option { return func(o *options) { o.dataDir = dir } }

// WithLogDir puts the components' logs into dir; the default is logs/ in the data directory, which
// goes with it when it is a temporary one.
func WithLogDir(dir string) Option { return func(o *options) { o.logDir = dir } }

// WithAddress has everything listen on an address of this machine in place of 127.0.0.1: whoever reaches the address
// reaches the control plane. It is for network namespaces of a test's own.
func WithAddress(addr netip.Addr) Option { return func(o *options) { o.address = addr } }

// WithControllerManager adds kube-controller-manager: workloads make pods, owners are collected,
// namespaces have a default ServiceAccount, and pods need one, as in any cluster.
func WithControllerManager() Option { return func(o *options) { o.controllerManager = true } }

// WithScheduler adds kube-scheduler.
func WithScheduler() Option { return func(o *options) { o.scheduler = true } }

// WithExtender adds kube-scheduler and has it ask an extender, at a URL that its verbs are appended to, about the pods
// that request one of some resources. The extender need not run yet; while it does not, such pods wait.
func WithExtender(url string, resources ...string) Option { return withExtender(url, true, resources) }

// WithWholeNodeExtender does what WithExtender does, for an extender that receives whole nodes in place of their
// names (nodeCacheCapable: false). Extenders must not share resources.
func WithWholeNodeExtender(url string, resources ...string) Option {
	return withExtender(url, false, resources)
}

// WithSecureExtender does what WithExtender does over HTTPS: kube-scheduler shows a client certificate of its user, and
// trusts the certificates of AllocatorCertificate.
func WithSecureExtender(url string, resources ...string) Option {
	return func(o *options) {
		WithExtender(url, resources...)(o)
		o.extenders[len(o.extenders)-1]["enableHTTPS"] = true
	}
}

func withExtender(url string, names bool, resources []string) Option {
	var managed []map[string]any
	for _, name := range resources {
		managed = append(managed, map[string]any{"name": name})
	}
	return func(o *options) {
		o.scheduler, o.extenders = true, append(slices.Clip(o.extenders), map[string]any{
			"urlPrefix": url, "filterVerb": "filter", "prioritizeVerb": "priority", "weight": 1,
			"nodeCacheCapable": names,
			"httpTimeout":      "10s", "managedResources": managed,
		})
	}
}

// WithKwok adds kwok, which is the kubelet of every node annotated kwok.x-k8s.io/node=fake: the node
// turns Ready, its pods Running, and deleted pods go. It gives pods no address; that is our work.
func WithKwok() Option { return func(o *options) { o.kwok = true } }

// WithArgs appends command line arguments for one component, named as its binary. The last
// of two equal flags wins.
func WithArgs(component string, args ...string) Option {
	return func(o *options) { o.args[component] = append(slices.Clip(o.args[component]), args...) }
}

// binaries lists the files that the chosen components need.
func (o options) binaries() []string {
	names := []string{etcdBinary, apiserverBinary}
	if o.controllerManager {
		names = append(names, controllerManagerBinary)
	}
	if o.scheduler {
		names = append(names, schedulerBinary)
	}
	if o.kwok {
		names = append(names, kwokBinary)
	}
	return names
}
