// bcsnet-podcheck runs in the pods of bcsnetctl check nodes, in two containers: one answers the others, one asks them.
// It is static and needs no files, so that it is an image by itself.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/bcsnet/bcsnet/pkg/cni/podcheck"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(podcheck.Main(ctx, os.Args[1:], os.Stderr))
}
