package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/block"
	"github.com/bcsnet/bcsnet/pkg/limiter"
)

// BlockObject returns the object of a block. Name, finalizer and namespace are in the object, so that its CREATE is the
// assignment. All other fields come from the parent. net and mask are set because every pool must have them, and the
// gateway because earlier releases require it.
func BlockObject(b ipam.Pool) *v1.BCSNetPool {
	return &v1.BCSNetPool{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1.GroupVersion.String(), Kind: "BCSNetPool"},
		ObjectMeta: metav1.ObjectMeta{Name: b.Name, Finalizers: []string{v1.PoolFinalizer}},
		Spec: v1.BCSNetPoolSpec{
			Net: b.Plan.Subnet.Addr().String(), Mask: int32(b.Plan.Subnet.Bits()), Gateway: addrString(b.Plan.Gateway),
			Parent: b.Parent, AvailableIPs: []string{b.Plan.CIDR.String()},
			Namespaces: slices.Sorted(maps.Keys(b.Namespaces)), Materialize: v1.MaterializeOnDemand,
		},
	}
}

// CreateBlock creates the object of a block, with additional marks, and returns the pool that then has its name: the
// new one, or one that existed before, read live. ErrConflict means that the other one has been deleted meanwhile.
func (c *Client) CreateBlock(ctx context.Context, b ipam.Pool, marks ...func(*v1.BCSNetPool)) (ipam.Pool, error) {
	leave, err := c.enter(ctx, limiter.Take, b.CountedAs())
	if err != nil {
		return b, err
	}
	defer leave()
	o := BlockObject(b)
	for _, mark := range marks {
		mark(o)
	}
	body, err := json.Marshal(o)
	if err != nil {
		return b, err
	}
	sending, cancel := context.WithTimeout(context.WithoutCancel(ctx), WriteTimeout)
	defer cancel()
	request := c.rest.Post().Resource(v1.PoolResource).Body(body)
	if c.dry {
		request = request.Param("dryRun", metav1.DryRunAll)
	}
	raw, err := c.send(ctx, sending, request, func() error { return nil }) // it replaces nothing
	if errors.Is(err, ErrConflict) {
		raw, err = c.ask(sending, c.rest.Get().Resource(v1.PoolResource).Name(b.Name))
		if errors.Is(err, ErrNotFound) {
			err = fmt.Errorf("%w: pool %s has gone", ErrConflict, b.Name)
		}
	}
	if err != nil {
		return b, err
	}
	var stored v1.BCSNetPool
	if err := json.Unmarshal(raw, &stored); err != nil {
		return b, fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	return Pool(&stored), nil
}

// IsBlock reports whether a pool's name is that of its parent's block with the pool's addresses.
func IsBlock(o *v1.BCSNetPool) bool {
	if o.Spec.Parent == "" || len(o.Spec.AvailableIPs) != 1 {
		return false
	}
	cidr, err := netip.ParsePrefix(o.Spec.AvailableIPs[0])
	return err == nil && block.IsName(o.Name, o.Spec.Parent, cidr)
}
