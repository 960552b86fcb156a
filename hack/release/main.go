// Release builds the parts of a release other than the images: archives, packages and a krew manifest of the command
// line, the chart, install.yaml, the schemas of our kinds, notes and checksums:
//
//	go run ./hack/release -version v1.2.3 -o dist/v1.2.3
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"

	"github.com/bcsnet/bcsnet/hack/build"
)

// platforms lists those that archives are made for, as plugins/kubectl/bcsnet.yaml does.
const platforms = "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "✗", err)
		os.Exit(1)
	}
}

// release is one run.
type release struct {
	build.Source
	out       string
	work      string // for what is not a part of the release
	platforms []platform
	log       io.Writer
}

type platform struct{ system, arch string }

// semantic matches the versions that krew, Helm and packages understand alike.
var semantic = regexp.MustCompile(`^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$`)

func run(ctx context.Context, args []string, log io.Writer) error {
	f := flag.NewFlagSet("release", flag.ContinueOnError)
	version := f.String("version", "", "`version`, such as v1.2.3")
	out := f.String("o", "", "`directory` to write to; empty for dist/VERSION")
	list := f.String("platforms", platforms, "systems and `processors` to build for")
	if err := f.Parse(args); err != nil {
		return err
	}
	if !semantic.MatchString(*version) {
		return fmt.Errorf("%q is not a version of a release, such as v1.2.3; hint: make release VERSION=v1.2.3",
			*version)
	}
	source, err := build.SourceOf(ctx, *version)
	if err != nil {
		return err
	}
	r := &release{Source: source, out: *out, log: log}
	if r.out == "" {
		r.out = filepath.Join(r.Root, "dist", *version)
	}
	for name := range strings.SplitSeq(*list, ",") {
		system, arch, ok := strings.Cut(name, "/")
		if !ok {
			return fmt.Errorf("%q is not a platform, such as linux/amd64", name)
		}
		r.platforms = append(r.platforms, platform{system, arch})
	}
	if r.work, err = os.MkdirTemp("", "bcsnet-release-"); err != nil {
		return err
	}
	defer os.RemoveAll(r.work)
	return r.run(ctx)
}

// run makes the parts in an order in which the cheap ones that can be wrong come first.
func (r *release) run(ctx context.Context) error {
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	for _, part := range []struct {
		name string
		make func(context.Context) error
	}{
		{"notes", r.notes},
		{"the programs", r.programs},
		{"completions", r.completions},
		{"man pages", r.manPages},
		{"archives", r.archives},
		{"deb and rpm", r.packages},
		{"the krew manifest", r.krew},
		{"install.yaml", r.manifests},
		{"the chart", r.chart},
		{"the schemas", r.schemas},
		{"checksums", r.checksums},
	} {
		fmt.Fprintf(r.log, "release: making %s\n", part.name)
		if err := part.make(ctx); err != nil {
			return fmt.Errorf("make %s: %w", part.name, err)
		}
	}
	return nil
}
