package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

const (
	// smallPools is how many pools there are when pages are measured, beside the large one, the one in blocks, and
	// viewedNetwork, from which addresses are taken while viewers follow its page.
	smallPools    = 197
	viewedNetwork = "bench-viewed"
	// viewers are the streams of viewers.
	viewers = 50
	// viewedBy allocate meanwhile.
	viewedBy = 16
)

// pages measures the pages of bcsnetctl ui, compressed as a browser gets them: of 200 pools, one of which is in 4,096
// blocks and one of 65,536 addresses. Then it measures allocations while viewers follow pages.
func (b *bench) pages(ctx context.Context) error {
	operator, err := b.crowd(ctx)
	if err != nil {
		return err
	}
	if err := b.manyPools(ctx); err != nil {
		return err
	}
	// The pods of the addresses are none of the cluster's, and nobody is to take their addresses back meanwhile.
	before := b.controller
	defer func() { b.controller = before }()
	b.controller, err = b.cp.StartController(ctx,
		controlplane.ControllerOptions{Name: "pages", Args: []string{"--garbage-collection=off"}})
	if err != nil {
		return err
	}
	if _, err := b.networkPool(ctx, viewedNetwork, "10.20.0.0/20"); err != nil {
		return err
	}
	s, err := b.newSite(ctx, operator)
	if err != nil {
		return err
	}
	return errors.Join(b.loadPages(ctx, s), b.viewed(ctx, s), s.close(), b.clicks(ctx, operator))
}

// manyPools makes the small pools and the one in blocks.
func (b *bench) manyPools(ctx context.Context) error {
	say("making %d pools and %d blocks", smallPools, owned)
	for i := range smallPools {
		subnet := fmt.Sprintf("10.113.%d.0/24", i)
		if _, err := b.pool(ctx, fmt.Sprintf("bench-page-%d", i), subnet, v1.MaterializeOnDemand); err != nil {
			return err
		}
	}
	split, err := b.pool(ctx, splitNetwork, blocksNetwork, v1.MaterializeOnDemand,
		func(s *v1.BCSNetPoolSpec) { s.BlockSize = blockLength })
	if err != nil {
		return err
	}
	var group errgroup.Group
	group.SetLimit(maxCallers)
	for i := range owned {
		group.Go(func() error {
			_, err := b.filler.CreateBlock(ctx, tenantBlock(split, i, tenant(i)))
			return err
		})
	}
	return group.Wait()
}

// loadPages measures how long pages take, and how large they are.
func (b *bench) loadPages(ctx context.Context, s *site) error {
	for _, one := range []struct {
		path string
		goal time.Duration
	}{
		{"/", time.Second}, {"/pool/" + cliPool, 2 * time.Second}, {"/pool/" + splitNetwork, 0}, {"/ip/10.112.0.20", 0},
		{"/host/" + host(0), 0}, {"/problems", 0},
	} {
		var all []page
		for range b.rounds {
			p, err := s.fetch(ctx, one.path)
			if err != nil {
				return err
			}
			all = append(all, p)
		}
		b.report.page(one.path, all, one.goal)
	}
	return nil
}

// viewed measures allocations of a pool while viewers follow its page and others.
func (b *bench) viewed(ctx context.Context, s *site) error {
	say("allocate: %d callers with %d viewers and without", viewedBy, viewers)
	with, without, err := b.switched(ctx, viewedBy, viewedNetwork, s.watched)
	if err == nil {
		b.report.viewed = append(b.report.viewed, switched(viewedBy, with, without))
		b.report.viewing(with, without)
	}
	return err
}
