package node

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	discoverylisters "k8s.io/client-go/listers/discovery/v1"
	"k8s.io/client-go/tools/cache"
)

// facts are data from the cluster. The zero facts are those before the first answer.
type facts struct {
	// cluster is the UID of kube-system.
	cluster string
	// endpoints are the replicas as HOST:PORT.
	endpoints []string
	// ca has the certificates in the ConfigMap.
	ca string
}

// source reads the facts from the cluster and keeps them.
type source struct {
	options Options
	client  kubernetes.Interface
	log     *slog.Logger

	mu      sync.Mutex
	now     facts
	changed chan struct{}
}

func newSource(o Options, client kubernetes.Interface, log *slog.Logger) *source {
	return &source{options: o, client: client, log: log, changed: make(chan struct{}, 1)}
}

// facts returns the facts that are known so far.
func (s *source) facts() facts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

// change changes the facts and starts the installer.
func (s *source) change(f func(*facts)) {
	s.mu.Lock()
	f(&s.now)
	s.mu.Unlock()
	select {
	case s.changed <- struct{}{}:
	default: // it is already triggered
	}
}

// run watches the cluster until the context ends.
func (s *source) run(ctx context.Context) error {
	namespace, name, _ := strings.Cut(s.options.Service, "/")
	factory := informers.NewSharedInformerFactoryWithOptions(s.client, 0, informers.WithNamespace(namespace),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.LabelSelector = labels.Set{discoveryv1.LabelServiceName: name}.String()
		}))
	endpointSlices := factory.Discovery().V1().EndpointSlices()
	read := func(any) { s.readEndpoints(endpointSlices.Lister()) }
	if _, err := endpointSlices.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: read, UpdateFunc: func(_, o any) { read(o) }, DeleteFunc: read,
	}); err != nil {
		return err
	}
	factory.StartWithContext(ctx)
	defer factory.Shutdown()
	shutdown, err := s.followCA(ctx)
	if err != nil {
		return err
	}
	defer shutdown()
	s.readCluster(ctx)
	<-ctx.Done()
	return nil
}

func (s *source) readEndpoints(lister discoverylisters.EndpointSliceLister) {
	all, err := lister.List(labels.Everything())
	if err != nil {
		s.log.Error("read the EndpointSlices", "error", err) // listers read from memory
		return
	}
	s.change(func(f *facts) { f.endpoints = endpointsOf(all, s.options.ServicePort) })
}

// followCA watches the CA's ConfigMap, if the options name one, until the context ends. If the ConfigMap is deleted,
// the node keeps its CA.
func (s *source) followCA(ctx context.Context) (shutdown func(), err error) {
	if s.options.CAConfigMap == "" {
		return func() {}, nil
	}
	namespace, name, _ := strings.Cut(s.options.CAConfigMap, "/")
	factory := informers.NewSharedInformerFactoryWithOptions(s.client, 0, informers.WithNamespace(namespace),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
		}))
	read := func(o any) {
		if m, ok := o.(*corev1.ConfigMap); ok {
			s.change(func(f *facts) { f.ca = m.Data[caFile] })
		}
	}
	_, err = factory.Core().V1().ConfigMaps().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: read, UpdateFunc: func(_, o any) { read(o) },
	})
	factory.StartWithContext(ctx)
	return factory.Shutdown, err
}

// readCluster reads the identity of the cluster, and retries until it is known. It never changes while this process
// runs.
func (s *source) readCluster(ctx context.Context) {
	for pause := time.Second; ; pause = min(2*pause, 30*time.Second) {
		namespace, err := s.client.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
		if err == nil {
			s.change(func(f *facts) { f.cluster = string(namespace.UID) })
			return
		}
		s.log.Warn("the identity of the cluster is not known yet", "error", err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}
