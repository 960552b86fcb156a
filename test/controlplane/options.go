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

// WithDataDir stores etcd's data, keys and kubeconfigs in dir. Stop leaves them there. The next start with the same
// directory continues with the same objects, but new keys.
func WithDataDir(dir string) Option { return func(o *options) { o.dataDir = dir } }

// WithLogDir sets the directory of the components' logs. The default is logs/ in the data directory; a temporary data
// directory is removed with its logs.
func WithLogDir(dir string) Option { return func(o *options) { o.logDir = dir } }

// WithAddress makes all components listen on an address of this machine instead of 127.0.0.1. Everybody who can reach
// the address can reach the control plane, so use it only in a network namespace of the test.
func WithAddress(addr netip.Addr) Option { return func(o *options) { o.address = addr } }

// WithControllerManager adds kube-controller-manager: workloads create pods, garbage of owners is collected, and
// namespaces have a default ServiceAccount, which pods then require.
func WithControllerManager() Option { return func(o *options) { o.controllerManager = true } }

// WithScheduler adds kube-scheduler.
func WithScheduler() Option { return func(o *options) { o.scheduler = true } }

// WithExtender adds kube-scheduler with an extender at a URL, to which the verbs are appended, for pods that request
// one of some resources. Such pods wait while the extender does not run.
func WithExtender(url string, resources ...string) Option { return withExtender(url, true, resources) }

// WithWholeNodeExtender does the same for an extender that receives whole nodes instead of their names
// (nodeCacheCapable: false). Extenders must not share resources.
func WithWholeNodeExtender(url string, resources ...string) Option {
	return withExtender(url, false, resources)
}

// WithSecureExtender does the same as WithExtender over HTTPS. kube-scheduler presents a client certificate of its
// user, and trusts the certificates of AllocatorCertificate.
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

// WithKwok adds kwok as the kubelet of every node with the annotation kwok.x-k8s.io/node=fake: nodes become Ready,
// their pods Running, and deleted pods are removed. It does not give pods addresses.
func WithKwok() Option { return func(o *options) { o.kwok = true } }

// WithArgs appends arguments to the command line of a component, which is named by its binary. The last of two equal
// flags counts.
func WithArgs(component string, args ...string) Option {
	return func(o *options) { o.args[component] = append(slices.Clip(o.args[component]), args...) }
}

// binaries lists the binaries of the chosen components.
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
