package main

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bcsnet/bcsnet/hack/build"
)

// entry is a file of this machine, its place in an archive or package, and its mode.
type entry struct {
	from, to string
	mode     int64
}

// archives writes two for each platform: that of bcsnetctl with all that goes with it, and what krew unpacks.
func (r *release) archives(context.Context) error {
	for _, p := range r.platforms {
		base := ctl + "_" + r.Version + "_" + p.system + "_" + p.arch
		files := []entry{
			{r.program(p, ctl), base + "/" + ctl, 0o755}, {r.program(p, plugin), base + "/" + plugin, 0o755},
			{r.shim(), base + "/" + shim, 0o755},
			{filepath.Join(r.Root, "LICENSE"), base + "/LICENSE", 0o644},
			{filepath.Join(r.Root, "CHANGELOG.md"), base + "/CHANGELOG.md", 0o644},
		}
		for _, name := range shells() {
			files = append(files, entry{filepath.Join(r.work, "completions", name), base + "/completions/" + name,
				0o644})
		}
		pages, err := r.pages()
		if err != nil {
			return err
		}
		for _, page := range pages {
			files = append(files, entry{page, base + "/man/" + filepath.Base(page), 0o644})
		}
		if err := r.archive(base+".tar.gz", files); err != nil {
			return err
		}
		err = r.archive(krewArchive(p), []entry{
			{r.program(p, plugin), plugin, 0o755}, {r.shim(), shim, 0o755}, {filepath.Join(r.Root, "LICENSE"),
				"LICENSE", 0o644},
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *release) shim() string { return filepath.Join(r.Root, "plugins", "kubectl", shim) }

func (r *release) manPages(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, "go", "run", "./hack/docs", "-man", filepath.Join(r.work, "man"))
	cmd.Dir, cmd.Stdout, cmd.Stderr = r.Root, r.log, r.log
	return cmd.Run()
}

func (r *release) pages() ([]string, error) {
	pages, err := filepath.Glob(filepath.Join(r.work, "man", "*.1"))
	if err == nil && len(pages) == 0 {
		err = errors.New("there are no man pages")
	}
	return pages, err
}

// archive writes files in the order of their places, of root and of one time.
func (r *release) archive(name string, files []entry) error {
	f, err := os.Create(filepath.Join(r.out, name))
	if err != nil {
		return err
	}
	defer f.Close()
	z := gzip.NewWriter(f)
	w := tar.NewWriter(z)
	byPlace := func(a, b entry) int { return strings.Compare(a.to, b.to) }
	for _, e := range slices.SortedFunc(slices.Values(files), byPlace) {
		if err := build.AddFile(w, e.from, e.to, e.mode, r.Created); err != nil {
			return err
		}
	}
	return errors.Join(w.Close(), z.Close(), f.Close())
}
