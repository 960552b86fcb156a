package pool

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// readBlocks reads the blocks of the pool, and counts them.
func (d *description) readBlocks(ctx context.Context, api *resource.Pools) error {
	all, err := api.ListWith(ctx, metav1.ListOptions{FieldSelector: "spec.parent=" + d.pool.Name})
	if err != nil {
		return err
	}
	x := ipam.NewIndex()
	x.Pools.SetPool(store.Pool(d.pool.BCSNetPool))
	d.blocks = map[string]resource.Pool{}
	for _, b := range resource.BlocksOf(all)[d.pool.Name] {
		x.Pools.SetPool(store.Pool(b.BCSNetPool))
		d.blocks[b.Name] = b
	}
	d.split = x.Pools.Blocks(d.pool.Name)
	return nil
}

// countWithBlocks counts an address of the pool or of one of its blocks.
func (d *description) countWithBlocks(l lease.Lease) error {
	if _, of := d.blocks[l.Pool]; !of && l.Pool != d.pool.Name {
		return nil
	}
	return d.count(l)
}

// blocksText says how many blocks the pool has, and who gives them.
func (d *description) blocksText() string {
	text := fmt.Sprintf("%d of /%d, %d owned", d.split.All, d.pool.Spec.BlockSize, d.split.Owned)
	if n := len(d.owners()); n > 0 {
		text += " by " + humanize.Plural(n, "namespace")
	}
	text += fmt.Sprintf(", %d free", d.split.Free)
	if !d.pool.Spec.AutoAssign {
		text += "; given by hand: " + d.Called("bcsnetctl pool bind "+d.pool.Name)
	}
	return text
}

// owners returns the namespaces that have blocks.
func (d *description) owners() map[string]bool {
	all := map[string]bool{}
	for _, b := range d.blocks {
		all[resource.OwnerOf(b)] = true
	}
	return all
}
