package controller

import (
	"context"
	"log/slog"
	"net/http"
	"sync"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/bcsnet/bcsnet/pkg/allocator"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// drainTime bounds the time for finishing requests in progress after the controller was asked to end. It is the longest
// time that a request can take, including its last write.
const drainTime = allocator.MaxRequestTime + store.WriteTimeout

// startAndDrain runs the manager until the context ends. Leadership is given up first, so that another replica leads
// while this one finishes. Then the allocator's server ends, with the requests in progress. The manager itself would
// stop the feed before the server, but a request waits for the feed to deliver its writes.
func startAndDrain(
	ctx context.Context, mgr ctrl.Manager, server *http.Server, elect func(context.Context), log *slog.Logger,
) error {
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	candidate, resign := context.WithCancel(ctx)
	defer resign()
	var beside sync.WaitGroup
	beside.Go(func() { elect(candidate) })
	beside.Go(func() {
		select {
		case <-running.Done(): // the manager ended without being asked
			return
		case <-ctx.Done():
		}
		defer stop()
		log.Info("ending: no new requests, those under way are finished")
		limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTime)
		defer cancel()
		if err := server.Shutdown(limit); err != nil {
			log.Warn("requests were cut off", "after", drainTime, "error", err)
		}
	})
	err := mgr.Start(running)
	stop()
	resign()
	beside.Wait()
	if err != nil && ctx.Err() != nil { // errors after the request to end do not matter
		log.Warn("something did not end in order", "error", err)
		err = nil
	}
	return err
}
