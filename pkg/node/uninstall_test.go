package node

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bcsnet/bcsnet/pkg/cni/undelivered"
)

var quiet = slog.New(slog.DiscardHandler)

// newInstalled returns the options of a node on which all is installed.
func newInstalled(t *testing.T) Options {
	t.Helper()
	o := newOptions(t)
	if err := newInstaller(o, nil).install(t.Context(), knownFacts()); err != nil {
		t.Fatal(err)
	}
	return o
}

// wantRemoved fails the test where something of an installation is left.
func wantRemoved(t *testing.T, o Options) {
	t.Helper()
	for _, dir := range []string{o.BinDir, o.ConfigDir, o.NetDir} {
		if got := filesOf(t, dir); len(got) > 0 {
			t.Errorf("%s has %v", dir, got)
		}
	}
}

// TestRemove removes all, and others' files stay; a second time there is nothing to do.
func TestRemove(t *testing.T) {
	o := newInstalled(t)
	others := []string{filepath.Join(o.BinDir, "bridge"), filepath.Join(o.NetDir, "20-other.conflist")}
	for _, path := range others {
		put(t, path, "of somebody else")
	}
	for range 2 {
		if err := o.removeFiles(t.Context(), quiet); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range others {
		if err := os.Remove(path); err != nil {
			t.Error(err)
		}
	}
	wantRemoved(t, o)
}

// TestRemoveWhilePodsHaveAddresses removes nothing: such pods could not end. With Force it does.
func TestRemoveWhilePodsHaveAddresses(t *testing.T) {
	o := newInstalled(t)
	dir := filepath.Join(o.RunDir, "attach")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(dir, "3f4e-eth0.json"), "{}")
	err := o.removeFiles(t.Context(), quiet)
	if err == nil || !strings.Contains(err.Error(), "1 interfaces of pods on node-1") {
		t.Errorf("%v", err)
	}
	wantInstalled(t, o, "c1")
	put(t, o.TokenFile, "the token of this pod") // by which the pods that are left release theirs
	if err := o.removeFiles(t.Context(), quiet); err == nil || filesOf(t, o.ConfigDir)["token"] != "the token of this pod" {
		t.Errorf("%v, and the node has %s", err, filesOf(t, o.ConfigDir)["token"])
	}
	o.Force = true
	if err := o.removeFiles(t.Context(), quiet); err != nil {
		t.Error(err)
	}
	wantRemoved(t, o)
}

// TestRemoveReportsReleases has a release that no replica takes: it stays, and the log says so.
func TestRemoveReportsReleases(t *testing.T) {
	o := newInstalled(t)
	put(t, filepath.Join(o.ConfigDir, configFile), `{"cluster":"c1","host":"10.0.0.11","replicas":["http://127.0.0.1:1"],"dataDir":"`+o.DataDir+`"}`)
	store := undelivered.In(o.DataDir)
	if err := store.Put(undelivered.Record{Cluster: "c1", ContainerID: "3f4e", IfName: "eth0", StartedAt: time.Now()}); err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	ctx, stop := context.WithTimeout(t.Context(), time.Second)
	defer stop()
	if err := o.removeFiles(ctx, slog.New(slog.NewTextHandler(&log, nil))); err != nil {
		t.Error(err)
	}
	if !strings.Contains(log.String(), "releases stay undelivered") {
		t.Errorf("the log:\n%s", log.String())
	}
	if n, err := store.Len(); n != 1 || err != nil {
		t.Errorf("%d releases, %v", n, err)
	}
	wantRemoved(t, o)
}

// TestRemoveKilledAtEachStep kills a removal after each of its steps: what is left without a conflist serves no ADD,
// and the next removal does the rest.
func TestRemoveKilledAtEachStep(t *testing.T) {
	for _, step := range []string{stepConflist, stepConfig, stepPrograms} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			o := newInstalled(t)
			killAt(t, o, "remove", step)
			if got := filesOf(t, o.NetDir); len(got) > 0 {
				t.Errorf("there is a conflist: %v", got)
			}
			if err := o.removeFiles(t.Context(), quiet); err != nil {
				t.Error(err)
			}
			wantRemoved(t, o)
		})
	}
}
