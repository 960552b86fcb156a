// Package previous has the release before this one, for tests that go from it to this one and back.
package previous

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/bcsnet/bcsnet/test/controlplane"
)

// before is the commit that counts as the release before this one as long as no release has a tag.
const before = "ed76b383"

// ErrNoHistory says that the sources of the release before this one are not there.
var ErrNoHistory = errors.New("the release before this one is not in this clone: git fetch --unshallow --tags")

// Release is a release as users have it: its manifests, and its controller.
type Release struct {
	Name string
	// Root is the directory of its sources.
	Root, Controller string
}

// Current returns what this checkout builds.
func Current() (Release, error) {
	root, err := controlplane.ModuleRoot()
	return Release{"this release", root, filepath.Join(root, "bin", "bcsnet-controller")}, err
}

// Get returns the release before this one, the last tag before this commit or else a commit of its time. It is built
// once, into bin/upgrade. The error is ErrNoHistory where its sources are not there, or why it could not be built.
func Get(ctx context.Context) (Release, error) {
	root, err := controlplane.ModuleRoot()
	if err != nil {
		return Release{}, err
	}
	name := before
	if tag, err := git(ctx, root, "describe", "--tags", "--abbrev=0", "--match", "v[0-9]*", "HEAD^"); err == nil {
		name = strings.TrimSpace(string(tag))
	}
	commit, err := git(ctx, root, "rev-parse", "--verify", "--quiet", name+"^{commit}")
	if err != nil {
		return Release{}, fmt.Errorf("%w: %s: %w", ErrNoHistory, name, err)
	}
	all := filepath.Join(root, "bin", "upgrade")
	dir := filepath.Join(all, strings.TrimSpace(string(commit))[:12])
	r := Release{name, dir, filepath.Join(dir, "bin", "bcsnet-controller")}
	if _, err := os.Stat(r.Controller); err == nil {
		return r, nil
	}
	if err := os.MkdirAll(all, 0o750); err != nil {
		return r, err
	}
	made, err := os.MkdirTemp(all, "building-")
	if err != nil {
		return r, err
	}
	defer os.RemoveAll(made)
	if err := build(ctx, root, name, made); err != nil {
		return r, fmt.Errorf("build %s: %w", name, err)
	}
	// Somebody else may have been faster, with the same.
	if err := os.Rename(made, dir); err != nil && !errors.Is(err, fs.ErrExist) {
		return r, err
	}
	return r, nil
}

// build unpacks the sources of a commit into a directory, and builds its controller there.
func build(ctx context.Context, root, commit, into string) error {
	sources, err := git(ctx, root, "archive", "--format=tar", commit)
	if err != nil {
		return err
	}
	unpack := exec.CommandContext(ctx, "tar", "-x", "-C", into)
	unpack.Stdin = bytes.NewReader(sources)
	if out, err := unpack.CombinedOutput(); err != nil {
		return fmt.Errorf("unpack: %w: %s", err, out)
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w",
		"-o", "bin/bcsnet-controller", "./cmd/controller")
	cmd.Dir = into
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=-mod=readonly -gcflags=all=-dwarf=false")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

func git(ctx context.Context, dir string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = dir
	return cmd.Output()
}
