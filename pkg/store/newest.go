package store

import (
	"context"

	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// Newest reads the version of the API server's newest state. Every write that was answered before has that version or a
// lower one. It costs the API server a list of one object.
func (c *Client) Newest(ctx context.Context) (uint64, error) {
	meta, err := c.page(ctx, c.lists().MaxRetries(0), 1, nil, func(lease.Lease) error { return nil })
	return parseVersion(meta.ResourceVersion), err
}
