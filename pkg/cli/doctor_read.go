package cli

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/pager"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/doctor"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/store"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// snapshotReader puts a snapshot together. Every part is written by the one goroutine that reads it.
type snapshotReader struct {
	*app.App
	api      dynamic.Interface
	snapshot *doctor.Snapshot
}

// takeSnapshot reads some parts of the cluster, all at once. What the user may not read, or the API server does
// not know, is missing from it.
func takeSnapshot(ctx context.Context, s *app.App, parts []doctor.Part) (*doctor.Snapshot, error) {
	api, err := s.Dynamic()
	if err != nil {
		return nil, err
	}
	leases, err := s.Leases()
	if err != nil {
		return nil, err
	}
	defer sayLater(s, "reading the cluster")()
	r := &snapshotReader{App: s, api: api, snapshot: &doctor.Snapshot{Missing: map[doctor.Part]error{}}}
	read := map[doctor.Part]func(context.Context) error{
		doctor.PartCRDs: r.readCRDs, doctor.PartController: r.readController, doctor.PartServices: r.readServices,
		doctor.PartPools: r.readPools, doctor.PartPods: r.readPods, doctor.PartNodes: r.readNodes,
		doctor.PartClaims:    r.readClaims,
		doctor.PartAddresses: func(ctx context.Context) error { return r.readLeases(ctx, leases) },
	}
	var mu sync.Mutex
	group, reading := errgroup.WithContext(ctx)
	for _, part := range parts {
		group.Go(func() error {
			err := resource.Explain(s, read[part](reading))
			if !apierrors.IsForbidden(err) && !resource.NoSuchResource(err) {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			r.snapshot.Missing[part] = err
			return nil
		})
	}
	err = group.Wait()
	r.snapshot.Now = leases.Now()
	return r.snapshot, err
}

// sayLater says on a terminal what takes longer than a second. The returned function ends that.
func sayLater(s *app.App, what string) (done func()) {
	if !s.Say.Terminal.Tty {
		return func() {}
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		timer := time.NewTimer(time.Second)
		defer timer.Stop()
		select {
		case <-timer.C:
			s.Say.Wait("%s", what)
		case <-stop:
		}
	}()
	return func() {
		close(stop)
		<-stopped
	}
}

func (r *snapshotReader) readPools(ctx context.Context) error {
	api, err := resource.NewPools(r.App)
	if err != nil {
		return err
	}
	all, err := api.List(ctx)
	for _, p := range all {
		r.snapshot.Pools = append(r.snapshot.Pools, doctor.Pool{Pool: store.Pool(p.BCSNetPool), Object: p.BCSNetPool})
	}
	return err
}

func (r *snapshotReader) readClaims(ctx context.Context) error {
	api, err := resource.NewClaims(r.App)
	if err != nil {
		return err
	}
	all, err := api.List(ctx, metav1.NamespaceAll, metav1.ListOptions{})
	for _, c := range all {
		r.snapshot.Claims = append(r.snapshot.Claims, c.BCSNetIPClaim)
	}
	return err
}

func (r *snapshotReader) readLeases(ctx context.Context, leases *store.Client) error {
	return leases.Each(ctx, "", func(l ipam.Lease) error {
		if doctor.Concerns(l, leases.Now()) {
			r.snapshot.Leases = append(r.snapshot.Leases, l)
		}
		return nil
	})
}

func (r *snapshotReader) readNodes(ctx context.Context) error {
	all, err := resource.ListNodes(ctx, r.App)
	for _, n := range all {
		r.snapshot.Nodes = append(r.snapshot.Nodes, doctor.Node{Name: n.Name, Addrs: n.Addrs, Ready: n.State == resource.HostReady})
	}
	return err
}

// podPage is how many pods one request asks for: the next are read while these are decoded.
const podPage = 1000

func (r *snapshotReader) readPods(ctx context.Context) (err error) {
	r.snapshot.Pods, err = allPods(ctx, r.App)
	return err
}

// allPods reads the pods of all namespaces.
func allPods(ctx context.Context, s *app.App) (all []workload.Pod, err error) {
	c, err := coreClient(s)
	if err != nil {
		return nil, err
	}
	pages := pager.New(func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return c.Pods("").List(ctx, o)
	})
	pages.PageSize = podPage
	err = pages.EachListItem(ctx, metav1.ListOptions{}, func(o runtime.Object) error {
		if p, ok := o.(*corev1.Pod); ok {
			all = append(all, workload.FromObject(p))
		}
		return nil
	})
	return all, err
}

// coreClient is the way to pods in the encoding that is the fastest to read.
func coreClient(s *app.App) (*typedcorev1.CoreV1Client, error) {
	cfg, err := s.Connect()
	if err != nil {
		return nil, err
	}
	cfg = rest.CopyConfig(cfg)
	cfg.ContentType = runtime.ContentTypeProtobuf
	cfg.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	c, err := typedcorev1.NewForConfig(cfg)
	if err != nil {
		return nil, s.ConfigProblem(err)
	}
	return c, nil
}
