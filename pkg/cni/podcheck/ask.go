package podcheck

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/bcsnet/bcsnet/pkg/nodecheck"
)

// planEvery is the interval in which the file of the plan is read.
const planEvery = 100 * time.Millisecond

// Ask waits for the plan in a file, carries it out, and returns the report.
func Ask(ctx context.Context, file string) (nodecheck.Report, error) {
	plan, err := awaitPlan(ctx, file)
	if err != nil {
		return nodecheck.Report{}, err
	}
	r := nodecheck.Report{Links: make([]nodecheck.Link, len(plan.Own))}
	var work sync.WaitGroup
	for i, own := range plan.Own {
		work.Go(func() { r.Links[i] = AskLink(ctx, own) })
	}
	r.Lost = AskPeers(ctx, plan.Peers, nodecheck.Port)
	work.Wait()
	return r, ctx.Err()
}

// awaitPlan waits until the file contains the plan and returns it. The kubelet replaces the file, by rename, when the
// pod gets the plan.
func awaitPlan(ctx context.Context, file string) (nodecheck.Plan, error) {
	ticker := time.NewTicker(planEvery)
	defer ticker.Stop()
	for {
		text, err := os.ReadFile(file)
		switch {
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return nodecheck.Plan{}, fmt.Errorf("read the plan: %w", err)
		case len(bytes.TrimSpace(text)) > 0:
			return nodecheck.ReadPlan(text)
		}
		select {
		case <-ctx.Done():
			return nodecheck.Plan{}, fmt.Errorf("no plan came in %s: %w", file, ctx.Err())
		case <-ticker.C:
		}
	}
}
