//go:build linux

package main

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/node/bed"
)

func TestRealNodes(t *testing.T) {
	if err := bed.Available(); err != nil {
		t.Skipf("skipped: %v", err)
	}
	// A name that is short: that of a socket has an end.
	dir, err := os.MkdirTemp("", "local-") //nolint:usetesting // t.TempDir has the test's name in it
	if err != nil {
		t.Fatal(err)
	}
	inner := filepath.Join(dir, "node")
	t.Cleanup(func() {
		local(t, inner, "down")
		_ = os.RemoveAll(dir)
	})
	want := func(code int, dir, verb string, flags ...string) {
		t.Helper()
		if _, got := local(t, dir, verb, flags...); got != code {
			t.Fatalf("%s %q: exit code %d, want %d", verb, flags, got, code)
		}
	}
	want(1, inner, "kill", "n1")
	want(1, inner, "kill")
	want(1, inner, "up", "-nodes", "10")
	// No node becomes Ready until the allocator has answered its plugin: nobody plays it.
	root, err := controlplane.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	want(0, inner, "up", "-nodes", "1", "-controller", filepath.Join(root, "bin", "bcsnet-controller"))
	want(0, inner, "status")

	shell := exec.Command("sh", "-ec", `. "$0/env"; kubectl get node n1 --output=jsonpath='{.status.nodeInfo.operatingSystem}'`, inner)
	if out, err := shell.CombinedOutput(); err != nil || string(out) != "linux" {
		t.Errorf("the node says %q, %v", out, err)
	}
	want(1, inner, "kill", "n2")
	want(1, inner, "start", "n1") // it is up
	want(0, inner, "kill", "n1")
	want(0, inner, "start", "n1")

	// The directory around it may be that of a control plane without nodes, whose end leaves this one alone.
	if err := os.WriteFile(filepath.Join(dir, "lock"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	want(0, dir, "down")
	want(0, inner, "status")
	want(0, inner, "down")
	if _, err := os.Stat(inner); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is still there: %v", inner, err)
	}
}
