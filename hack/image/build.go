package main

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// source says what an image is built from.
type source struct {
	version  string
	revision string    // of git; empty where there is none
	created  time.Time // of the commit, so that the same sources have the same one
}

// sourceOf asks git. SOURCE_DATE_EPOCH, in seconds, goes before the time of the commit.
func sourceOf(ctx context.Context, root, version string) (source, error) {
	s := source{version: version, created: time.Unix(0, 0).UTC()}
	out, err := exec.CommandContext(ctx, "git", "-C", root, "log", "-1", "--format=%H %ct").Output()
	seconds := ""
	if revision, at, ok := strings.Cut(strings.TrimSpace(string(out)), " "); err == nil && ok {
		s.revision, seconds = revision, at
	}
	if epoch, ok := os.LookupEnv("SOURCE_DATE_EPOCH"); ok {
		seconds = epoch
	}
	if seconds == "" {
		return s, nil
	}
	at, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return s, fmt.Errorf("SOURCE_DATE_EPOCH=%q is no number of seconds: %w", seconds, err)
	}
	s.created = time.Unix(at, 0).UTC()
	return s, nil
}

func moduleRoot(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOMOD: %w", err)
	}
	return filepath.Dir(strings.TrimSpace(string(out))), nil
}

type builder struct {
	root     string
	source   source
	registry string
	arch     []string
	log      io.Writer
}

// build compiles an image's programs for each platform and writes the archive and an SBOM for each platform.
func (b builder) build(ctx context.Context, i image, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "bcsnet-image-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	var platforms []platformImage
	for _, arch := range b.arch {
		fmt.Fprintf(b.log, "image: building %s for linux/%s\n", i.name, arch)
		var files []file
		for _, p := range i.programs {
			f := file{from: filepath.Join(work, arch, path.Base(p.to)), to: p.to}
			if err := b.compile(ctx, p.pkg, arch, f.from); err != nil {
				return err
			}
			files = append(files, f)
		}
		packed, err := pack(i, b.source, arch, files)
		if err != nil {
			return err
		}
		platforms = append(platforms, packed)
		if err := writeSBOM(filepath.Join(dir, i.name+"_linux_"+arch+".spdx.json"), i, b.source, packed, files); err != nil {
			return err
		}
	}
	return writeArchive(filepath.Join(dir, i.name+".tar"), b.registry+"/"+i.name+":"+b.source.version, b.source, platforms)
}

// compile builds a static program that depends on its sources, the Go version and the version alone.
func (b builder) compile(ctx context.Context, pkg, arch, out string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false",
		"-ldflags", "-s -w -X main.version="+b.source.version, "-o", out, pkg)
	cmd.Dir = b.root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch, "GOAMD64=v1", "GOARM64=v8.0",
		"GOFLAGS=", "GOWORK=off", "GOEXPERIMENT=")
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build %s: %w: %s", pkg, err, text)
	}
	have, err := platformOf(out)
	if err == nil && have != arch {
		err = fmt.Errorf("%s was built for %s, not for %s", pkg, have, arch)
	}
	return err
}

// platformOf returns the processor, in Go's words, that a static program is for.
func platformOf(program string) (string, error) {
	f, err := elf.Open(program)
	if err != nil {
		return "", fmt.Errorf("read the header of %s: %w", program, err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return "", errors.New(program + " is linked dynamically: an image from scratch has no libraries")
		}
	}
	switch f.Machine {
	case elf.EM_X86_64:
		return "amd64", nil
	case elf.EM_AARCH64:
		return "arm64", nil
	default:
		return "", fmt.Errorf("%s is for %s, which no image is built for", program, f.Machine)
	}
}
