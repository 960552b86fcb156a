// Package build compiles what is shipped: the same sources come to the same bytes, wherever they are.
package build

import (
	"archive/tar"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Source says what is built.
type Source struct {
	Root     string // the directory of the module
	Version  string
	Revision string    // of git; empty where there is none
	Created  time.Time // of the commit, so that the same sources have the same one
}

// SourceOf asks git about the module that the working directory is in. SOURCE_DATE_EPOCH, in seconds, goes before the
// time of the commit; without either it is 1970.
func SourceOf(ctx context.Context, version string) (Source, error) {
	s := Source{Version: version, Created: time.Unix(0, 0).UTC()}
	out, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return s, fmt.Errorf("go env GOMOD: %w", err)
	}
	s.Root = filepath.Dir(strings.TrimSpace(string(out)))
	seconds := ""
	out, err = exec.CommandContext(ctx, "git", "-C", s.Root, "log", "-1", "--format=%H %ct").Output()
	if revision, at, ok := strings.Cut(strings.TrimSpace(string(out)), " "); err == nil && ok {
		s.Revision, seconds = revision, at
	}
	if epoch, ok := os.LookupEnv("SOURCE_DATE_EPOCH"); ok {
		seconds = epoch
	}
	if seconds == "" {
		return s, nil
	}
	at, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return s, fmt.Errorf("SOURCE_DATE_EPOCH=%q is not a number of seconds: %w", seconds, err)
	}
	s.Created = time.Unix(at, 0).UTC()
	return s, nil
}

// Compile builds a static program for a system and processor, in Go's words. It depends only on the sources, the
// version and the Go version, not on what this machine sets.
func (s Source) Compile(ctx context.Context, pkg, system, arch, out string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-gcflags=all=-dwarf=false",
		"-ldflags", "-s -w -X main.version="+s.Version, "-o", out, pkg)
	cmd.Dir = s.Root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+arch, "GOAMD64=v1", "GOARM64=v8.0",
		"GOFLAGS=", "GOWORK=off", "GOEXPERIMENT=")
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build %s for %s/%s: %w: %s", pkg, system, arch, err, text)
	}
	return nil
}

// AddFile writes a file into an archive, of root and of one time.
func AddFile(w *tar.Writer, from, to string, mode int64, at time.Time) error {
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if err := w.WriteHeader(&tar.Header{Name: to, Mode: mode, Size: info.Size(), ModTime: at}); err != nil {
		return err
	}
	_, err = io.Copy(w, f)
	return err
}
