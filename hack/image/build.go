package main

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"

	"github.com/bcsnet/bcsnet/hack/build"
)

type builder struct {
	source   build.Source
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
		if err := writeSBOM(filepath.Join(dir, i.name+"_linux_"+arch+".spdx.json"), i, b.source, packed,
			files); err != nil {
			return err
		}
	}
	return writeArchive(filepath.Join(dir, i.name+".tar"), b.registry+"/"+i.name+":"+b.source.Version, b.source,
		platforms)
}

// compile builds a static program for Linux, and checks whom it is for.
func (b builder) compile(ctx context.Context, pkg, arch, out string) error {
	if err := b.source.Compile(ctx, pkg, "linux", arch, out); err != nil {
		return err
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
