package controller

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"net/netip"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/bcsnet/bcsnet/pkg/doctor"
)

const (
	// writePlainEvery is the minimum time between two writes of a replica.
	writePlainEvery = time.Minute
	// writePlainTime bounds one write, including the last write of an ending replica.
	writePlainTime = 5 * time.Second
)

// plainCallers remembers the machines that were answered over plain HTTP, and records them for doctor, in addition to
// the other replicas' records.
type plainCallers struct {
	maps  corev1client.ConfigMapInterface
	every time.Duration
	now   func() time.Time
	log   *slog.Logger

	mu sync.Mutex
	// latest are the hosts since the last write, with the times of their calls.
	latest map[netip.Addr]time.Time
}

// addPlainCallers adds the component if other machines are answered over plain HTTP, and returns the function that
// records a caller; nil otherwise.
func addPlainCallers(
	mgr ctrl.Manager, cfg *rest.Config, c *core, o Options, log *slog.Logger,
) (note func(netip.Addr), err error) {
	if !o.PlainHTTP {
		return nil, nil
	}
	client, err := corev1client.NewForConfigAndClient(cfg, mgr.GetHTTPClient())
	if err != nil {
		return nil, err
	}
	p := &plainCallers{
		maps:  client.ConfigMaps(cmp.Or(o.LeaderElectionNamespace, doctor.ControllerNamespace)),
		every: cmp.Or(o.PlainCallersEvery, writePlainEvery), now: c.leases.Now, log: log,
		latest: map[netip.Addr]time.Time{},
	}
	return p.note, mgr.Add(manager.RunnableFunc(p.run))
}

// note remembers a caller. If there are more than can be recorded, new ones are ignored.
func (p *plainCallers) note(host netip.Addr) {
	now := p.now()
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, ok := p.latest[host]; ok || len(p.latest) < doctor.MaxPlainCallers {
		p.latest[host] = now
	}
}

// run writes until the context ends, and once more after that.
func (p *plainCallers) run(ctx context.Context) error {
	failing := false
	write := func(ctx context.Context) {
		ctx, stop := context.WithTimeout(ctx, writePlainTime)
		defer stop()
		err := p.write(ctx)
		if err != nil && !failing {
			p.log.Warn("who calls by plain HTTP is not written down", "configmap", doctor.PlainCallersName, "error",
				err)
		}
		failing = err != nil
	}
	tick := time.NewTicker(p.every)
	defer tick.Stop()
	for {
		write(ctx)
		select {
		case <-ctx.Done():
			write(context.WithoutCancel(ctx))
			return nil
		case <-tick.C:
		}
	}
}

// write adds the callers since the last write to the ConfigMap. If that fails, they are kept for the next write.
func (p *plainCallers) write(ctx context.Context) error {
	p.mu.Lock()
	latest := p.latest
	p.latest = map[netip.Addr]time.Time{}
	p.mu.Unlock()
	err := p.merge(ctx, latest)
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) { // another replica was faster
		err = p.merge(ctx, latest)
	}
	if err != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		maps.Copy(latest, p.latest)
		p.latest = latest
	}
	return err
}

// merge writes the ConfigMap with further callers, unless it already has them.
func (p *plainCallers) merge(ctx context.Context, latest map[netip.Addr]time.Time) error {
	o, err := p.maps.Get(ctx, doctor.PlainCallersName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		next, _ := doctor.PlainCallers{}.Add(latest, p.now())
		_, err = p.maps.Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: doctor.PlainCallersName}, Data: next.Data(),
		}, metav1.CreateOptions{})
		return err
	}
	if err != nil {
		return err
	}
	known, damaged := doctor.ParsePlainCallers(o.Data)
	if damaged != nil {
		known.Kept = time.Time{} // it is not known whether anybody is missing: the memory begins anew
		p.log.Warn("who called by plain HTTP was damaged; what can be read is kept", "configmap",
			doctor.PlainCallersName, "error", damaged)
	}
	next, changed := known.Add(latest, p.now())
	if !changed && damaged == nil {
		return nil
	}
	o.Data = next.Data()
	_, err = p.maps.Update(ctx, o, metav1.UpdateOptions{})
	return err
}
