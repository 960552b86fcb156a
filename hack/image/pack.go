package main

import (
	"archive/tar"
	"bytes"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/bcsnet/bcsnet/hack/build"
)

// home is where the sources are.
const home = "https://github.com/bcsnet/bcsnet"

// file is a program on this machine and its place in the image.
type file struct{ from, to string }

// platformImage is an image for one platform.
type platformImage struct {
	v1.Image
	arch string
}

// pack makes the image of one platform, with one layer.
func pack(i image, s build.Source, arch string, files []file) (platformImage, error) {
	text, err := layerOf(files, s.Created)
	if err != nil {
		return platformImage{}, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text)), nil }
	layer, err := tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
	if err != nil {
		return platformImage{}, err
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	created := v1.Time{Time: s.Created}
	img, err := mutate.Append(base, mutate.Addendum{
		Layer: layer, History: v1.History{Created: created, CreatedBy: "hack/image"}, MediaType: types.OCILayer,
	})
	if err != nil {
		return platformImage{}, err
	}
	config, err := img.ConfigFile()
	if err != nil {
		return platformImage{}, err
	}
	config = config.DeepCopy()
	config.Architecture, config.OS, config.Created = arch, "linux", created
	config.Config = v1.Config{
		User: i.user, Entrypoint: i.entrypoint, Cmd: i.command, Labels: labels(i, s), WorkingDir: "/",
	}
	for _, port := range i.ports {
		if config.Config.ExposedPorts == nil {
			config.Config.ExposedPorts = map[string]struct{}{}
		}
		config.Config.ExposedPorts[port] = struct{}{}
	}
	img, err = mutate.ConfigFile(img, config)
	return platformImage{img, arch}, err
}

// labels returns the labels of an image that is released; none of one that is not.
func labels(i image, s build.Source) map[string]string {
	if i.title == "" {
		return nil
	}
	const prefix = "org.opencontainers.image."
	all := map[string]string{
		prefix + "title": i.title, prefix + "description": i.description, prefix + "version": s.Version,
		prefix + "created": s.Created.Format(time.RFC3339), prefix + "licenses": "Apache-2.0",
		prefix + "source": home, prefix + "url": home, prefix + "documentation": home + "/tree/main/docs",
	}
	if s.Revision != "" {
		all[prefix+"revision"] = s.Revision
	}
	return all
}

// layerOf returns an archive with the programs and their directories, all of one time and of root.
func layerOf(files []file, at time.Time) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	made := map[string]bool{}
	byPlace := func(a, b file) int { return strings.Compare(a.to, b.to) }
	for _, f := range slices.SortedFunc(slices.Values(files), byPlace) {
		for _, dir := range parents(f.to) {
			if made[dir] {
				continue
			}
			made[dir] = true
			err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o755, ModTime: at})
			if err != nil {
				return nil, err
			}
		}
		text, err := os.ReadFile(f.from)
		if err != nil {
			return nil, err
		}
		header := &tar.Header{Name: strings.TrimPrefix(f.to, "/"), Mode: 0o755, Size: int64(len(text)), ModTime: at}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := w.Write(text); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), w.Close()
}

// parents returns the directories above a path, the outermost first, without a leading slash.
func parents(name string) (all []string) {
	for dir := path.Dir(strings.TrimPrefix(name, "/")); dir != "."; dir = path.Dir(dir) {
		all = append(all, dir)
	}
	slices.Reverse(all)
	return all
}
