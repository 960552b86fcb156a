package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/httpapi/wire"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// newcomers is the number of namespaces that come at once, fewNewcomers how many come one by one before the others have
// their turn.
const newcomers, fewNewcomers = 1000, 20

// newcomers measures the first address of new namespaces: of one caller beside an ordinary first address, and of 1,000
// at once beside a bare client that does the same two creates.
func (b *bench) newcomers(ctx context.Context, flat *bench) error {
	fresh, plain := service{b: b, kind: "newcomer", network: splitNetwork},
		service{b: flat, kind: "plain", network: flatNetwork}
	turns := largeTurns * b.rounds
	if err := b.makeNewcomers(ctx, turns*fewNewcomers+(b.rounds+1)*newcomers); err != nil {
		return err
	}
	if err := atRest(ctx); err != nil {
		return err
	}
	came := 0
	var first, ordinary []result
	for range turns {
		for _, one := range []struct {
			of *[]result
			op operation
		}{{&first, fresh.firstOf}, {&ordinary, plain.first}} {
			r, err := oneByOne(ctx, came, fewNewcomers, one.op)
			if err != nil {
				return err
			}
			*one.of = append(*one.of, r)
		}
		came += fewNewcomers
	}
	b.report.contest("time of the first address of a new namespace, one caller, in ordinary first addresses", typical,
		first, ordinary)
	// The bare client's blocks are of a pool that gives none by itself: it is nobody's choice.
	bare, err := b.networkPool(ctx, "bench-bare", "10.96.0.0/13",
		func(s *v1.BCSNetPoolSpec) { s.BlockSize = blockLength })
	if err != nil {
		return err
	}
	say("%d new namespaces at once", newcomers)
	var ours, floor []result
	var refused atomic.Int64
	for turn := range b.rounds + 1 {
		crowd := service{b: b, kind: "at-once", network: splitNetwork}
		both := []func() error{
			func() error {
				return b.atOnce(ctx, turn, &ours, func(i int) error {
					return crowd.untilServed(ctx, came+turn*newcomers+i, &refused)
				})
			},
			func() error {
				return b.atOnce(ctx, turn, &floor, func(i int) error {
					return b.bareNewcomer(ctx, bare,
						turn*newcomers+i)
				})
			},
		}
		if turn%2 == 1 {
			slices.Reverse(both)
		}
		for _, run := range both {
			if err := run(); err != nil {
				return err
			}
		}
	}
	b.report.contest("1000 new namespaces at once, a second, of a bare client that makes the same two objects", rate,
		ours, floor)
	b.report.block("of these, asked to come again later", fmt.Sprintf("%.1f %%",
		float64(refused.Load())/float64((b.rounds+1)*newcomers)*100))
	return nil
}

// untilServed asks for the address of a newcomer, again after a second where too much work waits, or where it was not
// known in time what became of a write: as a CNI plugin does.
func (s service) untilServed(ctx context.Context, n int, refused *atomic.Int64) error {
	for {
		err := s.firstOf(ctx, 0, n)
		if err == nil || !strings.Contains(err.Error(), string(ipam.ReasonOverloaded)) &&
			!strings.Contains(err.Error(), string(ipam.ReasonOutcomeUnknown)) {
			return err
		}
		refused.Add(1)
		if err := pause(ctx, time.Second); err != nil {
			return err
		}
	}
}

// typical returns the time of the median operation.
func typical(r result) float64 { return r.p50.Seconds() }

// firstOf asks for the address of the one pod of the nth new namespace.
func (s service) firstOf(ctx context.Context, _, n int) error {
	return s.send(ctx, http.MethodPost, wire.AllocateRequest{
		Host: host(n), ContainerID: containerID(s.kind, 0, n), PodNamespace: newcomer(n), PodName: "first",
		Network: s.network,
	})
}

func newcomer(n int) string { return fmt.Sprintf("new-%d", n) }

// makeNewcomers makes namespaces with a pod each.
func (b *bench) makeNewcomers(ctx context.Context, n int) error {
	say("making %d namespaces with a pod each", n)
	var group errgroup.Group
	group.SetLimit(maxCallers)
	for i := range n {
		group.Go(func() error {
			return errors.Join(
				b.admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: newcomer(i)}}),
				b.admin.Create(ctx, &corev1.Pod{
					ObjectMeta: metav1.ObjectMeta{Namespace: newcomer(i), Name: "first"},
					Spec: corev1.PodSpec{
						NodeName: nodeName(i), Containers: []corev1.Container{{Name: "c", Image: "c"}},
					},
				}))
		})
	}
	return group.Wait()
}

// oneByOne times a number of operations of one caller.
func oneByOne(ctx context.Context, from, n int, op operation) (r result, err error) {
	before, err := cpu()
	if err != nil {
		return r, err
	}
	var took []time.Duration
	for i := range n {
		began := time.Now()
		if err := op(ctx, 0, from+i); err != nil {
			return r, err
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	r = result{p50: took[n/2], ops: n, cpu: map[string]time.Duration{}}
	after, err := cpu()
	for name, t := range after {
		r.cpu[name] = (t - before[name]) / time.Duration(n)
	}
	return r, err
}

// atOnce does something for all newcomers at once, and adds how many a second were served; of the first turn, which
// warms up, it adds nothing.
func (b *bench) atOnce(ctx context.Context, turn int, to *[]result, one func(i int) error) error {
	if err := atRest(ctx); err != nil {
		return err
	}
	before, err := cpu()
	if err != nil {
		return err
	}
	began := time.Now()
	var group errgroup.Group
	for i := range newcomers {
		group.Go(func() error { return one(i) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	r := result{perSecond: newcomers / time.Since(began).Seconds(), cpu: map[string]time.Duration{}}
	after, err := cpu()
	for name, t := range after {
		r.cpu[name] = (t - before[name]) / newcomers
	}
	if turn > 0 {
		*to = append(*to, r)
	}
	return err
}

// bareNewcomer makes a block and a lease in it, by a client that decides nothing.
func (b *bench) bareNewcomer(ctx context.Context, p *v1.BCSNetPool, i int) error {
	of := tenantBlock(p, i, "bare-"+tenant(i))
	if _, err := b.bare.client.CreateBlock(ctx, of); err != nil {
		return err
	}
	params := lease.Params{Pool: of.Name, Bits: of.Plan.Subnet.Bits(), Gateway: of.Plan.Gateway}
	return take(ctx, b.bare.client, of.Plan.CIDR.Addr().Next(), params, ownerIn(of.Owner(), i, 0))
}
