package api

import (
	"testing"

	v1 "github.com/bcsnet/bcsnet/api/v1"
)

// A pool keeps its subnet while addresses are held; everything else may change, and everything
// once they are released.
func TestHeldPoolKeepsItsSubnet(t *testing.T) {
	c := connect(t)
	p := pool()
	create(t, c, p)
	held := func(active, reserved int64) {
		t.Helper()
		p.Status = v1.BCSNetPoolStatus{
			Status: v1.PoolNormal, Capacity: 3, Active: active, Reserved: reserved, Available: 3 - active - reserved,
		}
		if err := c.Status().Update(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	change := func(edit func(*v1.BCSNetPoolSpec), want ...string) {
		t.Helper()
		changed := p.DeepCopy()
		edit(&changed.Spec)
		err := c.Update(t.Context(), changed)
		if diff := compare(t, want, err); diff != "" {
			t.Error(diff)
		}
		if err == nil {
			p = changed
		}
	}
	const next = "release them first, or make another pool"

	change(subnet("10.0.4.0", 22, "10.0.4.1")) // nothing said of addresses yet
	change(subnet("10.0.0.0", 24, "10.0.0.1"))
	held(1, 0)
	change(subnet("10.0.1.0", 24, "10.0.1.1"),
		"spec.net: Forbidden: cannot change from 10.0.0.0 to 10.0.1.0 while addresses of the pool are held (1 active, 0 reserved): "+next)
	change(subnet("10.0.0.0", 25, "10.0.0.1"),
		"spec.mask: Forbidden: cannot change from 24 to 25 while addresses of the pool are held (1 active, 0 reserved): "+next)
	held(0, 2)
	change(subnet("10.0.4.0", 22, "10.0.4.1"),
		"spec.net: Forbidden: cannot change from 10.0.0.0 to 10.0.4.0 while addresses of the pool are held (0 active, 2 reserved): "+next,
		"spec.mask: Forbidden: cannot change from 24 to 22 while addresses of the pool are held (0 active, 2 reserved): "+next)
	change(subnet("10.0.0.0", 24, "10.0.0.254")) // the gateway may move
	change(available("10.0.0.40-10.0.0.49"))
	change(hosts())
	held(0, 0)
	change(subnet("10.0.4.0", 22, "10.0.4.1"))
}
