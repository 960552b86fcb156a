package main

import (
	"archive/tar"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/bcsnet/bcsnet/hack/build"
)

// writeArchive writes, by rename, an OCI layout in a tar archive: an index of the platforms under the image's name, as
// containerd imports it and as tools copy it to a registry.
func writeArchive(out, name string, s build.Source, platforms []platformImage) error {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, p := range platforms {
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: p, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: p.arch}},
		})
	}
	dir, err := os.MkdirTemp("", "bcsnet-layout-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	at, err := layout.Write(dir, mutate.IndexMediaType(empty.Index, types.OCIImageIndex))
	if err != nil {
		return err
	}
	// containerd takes the first annotation for the name, others the second.
	err = at.AppendIndex(index, layout.WithAnnotations(map[string]string{
		"io.containerd.image.name": name, "org.opencontainers.image.ref.name": name,
	}))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(out), 0o755); err != nil {
		return err
	}
	f, err := os.Create(out + ".new")
	if err != nil {
		return err
	}
	if err := errors.Join(tarDirectory(f, dir, s.Created), f.Close()); err != nil {
		return err
	}
	return os.Rename(out+".new", out)
}

// tarDirectory writes the files under a directory in the order of their names, with one time and mode.
func tarDirectory(out io.Writer, dir string, at time.Time) error {
	w := tar.NewWriter(out)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		return build.AddFile(w, path, filepath.ToSlash(name), 0o644, at)
	})
	return errors.Join(err, w.Close())
}
