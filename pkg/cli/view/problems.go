package view

import (
	"context"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/dynamic"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/doctor"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/recovery"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// snapshotReader collects a snapshot. Each part is written only by the goroutine that reads it.
type snapshotReader struct {
	*app.App
	api      dynamic.Interface
	snapshot *doctor.Snapshot
}

// Snapshot reads parts of the cluster concurrently. Missing lists the parts that the user may not read or the API
// server does not serve.
func Snapshot(ctx context.Context, s *app.App, parts []doctor.Part) (*doctor.Snapshot, error) {
	api, err := s.Dynamic()
	if err != nil {
		return nil, err
	}
	leases, err := s.Leases()
	if err != nil {
		return nil, err
	}
	defer s.Say.WaitLater("reading the cluster")()
	r := &snapshotReader{App: s, api: api, snapshot: &doctor.Snapshot{Missing: map[doctor.Part]error{}}}
	read := map[doctor.Part]func(context.Context) error{
		doctor.PartCRDs: r.readCRDs, doctor.PartController: r.readController, doctor.PartServices: r.readServices,
		doctor.PartPools: r.readPools, doctor.PartPods: r.readPods, doctor.PartNodes: r.readNodes,
		doctor.PartClaims: r.readClaims, doctor.PartPlain: r.readPlainCallers, doctor.PartOwners: r.readOwners,
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
	return leases.Each(ctx, "", func(l lease.Lease) error {
		if doctor.Concerns(l, leases.Now()) {
			r.snapshot.Leases = append(r.snapshot.Leases, l)
		}
		return nil
	})
}

func (r *snapshotReader) readOwners(ctx context.Context) (err error) {
	var shown []recovery.Object
	r.snapshot.Owners, shown, err = resource.ListOwners(ctx, r.api)
	r.snapshot.Shown = sets.New[doctor.Shown]()
	for _, s := range shown {
		r.snapshot.Shown.Insert(doctor.Shown{Namespace: s.Namespace, Addr: s.Addr})
	}
	return err
}

func (r *snapshotReader) readNodes(ctx context.Context) error {
	all, err := resource.ListNodes(ctx, r.App)
	for _, n := range all {
		r.snapshot.Nodes = append(r.snapshot.Nodes, n.Node)
	}
	return err
}

func (r *snapshotReader) readPods(ctx context.Context) (err error) {
	r.snapshot.Pods, err = resource.AllPods(ctx, r.App)
	return err
}
