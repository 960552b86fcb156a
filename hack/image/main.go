// Image builds container images without a container engine: programs are compiled for each platform and packed from
// scratch into one OCI archive per image, the same bytes for the same sources. Beside it goes its SBOM:
//
//	go run ./hack/image -version v1.2.3 -o dist/images           # all that table.go has
//	go run ./hack/image -version dev -arch amd64 -o DIR NAME…    # some, for one platform
//	go run ./hack/image -program bin/node/podtool -cmd pause -name bcsnet.test/podtool:1 -o podtool.tar
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/bcsnet/bcsnet/hack/build"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "✗", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, log io.Writer) error {
	f := flag.NewFlagSet("image", flag.ContinueOnError)
	out := f.String("o", "dist/images", "`directory` to write to; with -program, the file")
	version := f.String("version", "dev", "`version` of the programs, which is the images' tag")
	registry := f.String("registry", registry, "what stands before the names of the images")
	arch := f.String("arch", "amd64,arm64", "`processors` to build for")
	program := f.String("program", "", "pack this static `file`, which is run, and arguments PATH=FILE")
	name := f.String("name", "", "with -program: the image's `name` with its tag")
	command := f.String("cmd", "", "with -program: its first argument where a container has none")
	if err := f.Parse(args); err != nil {
		return err
	}
	if *program != "" {
		return packProgram(*out, *name, *command, *program, f.Args())
	}
	source, err := build.SourceOf(ctx, *version)
	if err != nil {
		return err
	}
	wanted, err := named(f.Args())
	if err != nil {
		return err
	}
	b := builder{source: source, registry: *registry, arch: strings.Split(*arch, ","), log: log}
	for _, image := range wanted {
		if err := b.build(ctx, image, *out); err != nil {
			return fmt.Errorf("build the image %s: %w", image.name, err)
		}
	}
	return nil
}

// named returns the images of these names, or all.
func named(names []string) ([]image, error) {
	all := images()
	if len(names) == 0 {
		return all, nil
	}
	var wanted []image
	for _, name := range names {
		at := slices.IndexFunc(all, func(i image) bool { return i.name == name })
		if at < 0 {
			return nil, fmt.Errorf("there is no image %s; hint: see hack/image/table.go", name)
		}
		wanted = append(wanted, all[at])
	}
	return wanted, nil
}

// packProgram packs a program that is there, which is run, and further files, each given as PATH=FILE.
func packProgram(out, name, command, program string, further []string) error {
	if name == "" {
		return fmt.Errorf("-program %s wants -name, such as bcsnet.test/%s:1", program, filepath.Base(program))
	}
	base := "/" + filepath.Base(program)
	one := image{name: name, entrypoint: []string{base}}
	if command != "" {
		one.command = []string{command}
	}
	platform, err := platformOf(program)
	if err != nil {
		return err
	}
	files := []file{{from: program, to: base}}
	for _, f := range further {
		to, from, ok := strings.Cut(f, "=")
		if !ok || !filepath.IsLocal(to) {
			return fmt.Errorf("%q is not PATH=FILE, such as programs/bcsnet-ipam=bin/bcsnet-ipam", f)
		}
		files = append(files, file{from: from, to: "/" + to})
	}
	packed, err := pack(one, build.Source{}, platform, files)
	if err != nil {
		return err
	}
	return writeArchive(out, name, build.Source{}, []platformImage{packed})
}
