package resource

import (
	"context"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

// FitLengths refuses an address with another prefix length than its pool, such as 10.0.0.5/25, because one of the two
// is mistyped. It reads the pools only if a word has a length.
func FitLengths(ctx context.Context, s *app.App, words []string) error {
	var pools []Pool
	for _, word := range words {
		a, bits, err := ipaddr.ParseHost(word)
		if err != nil || bits == 0 || bits == a.BitLen() {
			continue
		}
		if pools == nil {
			if pools, err = AllPools(ctx, s); err != nil {
				return err
			}
		}
		name, _ := IndexOf(s, pools).Pools.PoolOf(a)
		for _, p := range pools {
			if p.Name == name && int(p.Spec.Mask) != bits {
				return app.Usagef("%s has the length /%d, and pool %s of %s the length /%d", word, bits, name, a,
					p.Spec.Mask).
					WithHint("write %s", a)
			}
		}
	}
	return nil
}
