// Neighbours runs the tests in which others' programs are, and writes what came of them: into a record, and from there
// into the pages about neighbours.
//
//	go run ./hack/neighbours                # all
//	go run ./hack/neighbours ./test/cni     # some packages; the others keep what the record has
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"
)

// recordFile is the record, and pages are the pages that are made of it. The program runs at the top of the module.
const recordFile = "test/neighbours/record.json"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "✗", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, only []string) error {
	for _, pkg := range only {
		if !slices.Contains(packages(), pkg) {
			return fmt.Errorf("there are no neighbours in %s; hint: see hack/neighbours/table.go", pkg)
		}
	}
	r, err := readRecord(recordFile)
	if err != nil {
		return err
	}
	var failed []error
	for _, pkg := range packages() {
		if len(only) > 0 && !slices.Contains(only, pkg) {
			continue
		}
		results, err := test(ctx, pkg)
		if err != nil {
			failed = append(failed, err)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := r.add(".", pkg, time.Now(), results); err != nil {
			return err
		}
	}
	if err := r.write(recordFile); err != nil {
		return err
	}
	return errors.Join(append(failed, writePages(r))...)
}
