package view

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// readBlocks reads and counts the blocks of the pool.
func (d *Pool) readBlocks(ctx context.Context, api *resource.Pools) error {
	all, err := api.ListWith(ctx, metav1.ListOptions{FieldSelector: "spec.parent=" + d.Pool.Name})
	if err != nil {
		return err
	}
	x := index.New()
	x.Pools.SetPool(store.Pool(d.Pool.BCSNetPool))
	d.blocks = map[string]resource.Pool{}
	for _, b := range resource.BlocksOf(all)[d.Pool.Name] {
		x.Pools.SetPool(store.Pool(b.BCSNetPool))
		d.blocks[b.Name] = b
	}
	d.split = x.Pools.Blocks(d.Pool.Name)
	return nil
}

// countWithBlocks counts an address if it belongs to the pool or one of its blocks.
func (d *Pool) countWithBlocks(l lease.Lease) error {
	if _, of := d.blocks[l.Pool]; !of && l.Pool != d.Pool.Name {
		return nil
	}
	return d.count(l)
}

// blocksText counts the blocks of the pool, and says if they are given by hand.
func (d *Pool) blocksText(s *app.App) string {
	text := fmt.Sprintf("%d of /%d, %d owned", d.split.All, d.Pool.Spec.BlockSize, d.split.Owned)
	if n := len(d.owners()); n > 0 {
		text += " by " + humanize.Plural(n, "namespace")
	}
	text += fmt.Sprintf(", %d free", d.split.Free)
	if !d.Pool.Spec.AutoAssign {
		text += "; given by hand: " + s.Called("bcsnetctl pool bind "+d.Pool.Name)
	}
	return text
}

// owners returns the namespaces that have blocks.
func (d *Pool) owners() map[string]bool {
	all := map[string]bool{}
	for _, b := range d.blocks {
		all[resource.OwnerOf(b)] = true
	}
	return all
}
