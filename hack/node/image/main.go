// Image packs static programs into an image, an OCI layout in a tar archive as container runtimes import it. The first
// one runs where a pod names none:
//
//	go run ./hack/node/image -o podtool.tar PROGRAM OTHER
//	go run ./hack/node/image -o node.tar -name NAME -cmd install PROGRAM programs/OTHER=FILE
package main

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"
)

// descriptor points from one part of an image to another, by its digest.
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type manifest struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType"`
	Config        *descriptor  `json:"config,omitempty"`
	Layers        []descriptor `json:"layers,omitempty"`
	Manifests     []descriptor `json:"manifests,omitempty"`
}

const (
	configType   = "application/vnd.oci.image.config.v1+json"
	indexType    = "application/vnd.oci.image.index.v1+json"
	layerType    = "application/vnd.oci.image.layer.v1.tar"
	manifestType = "application/vnd.oci.image.manifest.v1+json"
)

func main() {
	out := flag.String("o", "", "`file` to write")
	name := flag.String("name", "bcsnet.test/podtool:1", "`name` of the image")
	verb := flag.String("cmd", "pause", "`argument` of the program where a pod names none")
	flag.Parse()
	if *out == "" || flag.NArg() < 1 {
		fmt.Fprintln(os.Stderr, "usage: image -o FILE [-name NAME] [-cmd ARGUMENT] PROGRAM [[PATH=]FILE]...")
		os.Exit(2)
	}
	if err := pack(*out, *name, *verb, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "✗", err)
		os.Exit(1)
	}
}

// pack writes the archive by rename, and the same bytes for the same files: the program, which is run, and others.
func pack(out, name, verb string, files []string) error {
	first, _ := inImage(files[0])
	content, err := packLayer(files)
	if err != nil {
		return err
	}
	var a archive
	layer := a.blob(layerType, content)
	config, err := json.Marshal(map[string]any{
		"architecture": runtime.GOARCH, "os": "linux",
		"config": map[string]any{"Entrypoint": []string{"/" + first}, "Cmd": []string{verb}},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{layer.Digest}},
	})
	if err != nil {
		return err
	}
	configAt := a.blob(configType, config)
	image, err := json.Marshal(manifest{2, manifestType, &configAt, []descriptor{layer}, nil})
	if err != nil {
		return err
	}
	imageAt := a.blob(manifestType, image)
	imageAt.Annotations = map[string]string{"io.containerd.image.name": name}
	index, err := json.Marshal(manifest{2, indexType, nil, nil, []descriptor{imageAt}})
	if err != nil {
		return err
	}
	a.file("index.json", index)
	a.file("oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`))
	if err := os.WriteFile(out+".new", a.bytes(), 0o644); err != nil {
		return err
	}
	return os.Rename(out+".new", out)
}

// archive is a tar archive in memory.
type archive struct {
	buffer bytes.Buffer
	tar    *tar.Writer
}

func (a *archive) file(name string, data []byte) {
	a.begin()
	// A buffer takes all that it is given.
	_ = a.tar.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(data))})
	_, _ = a.tar.Write(data)
}

func (a *archive) dir(name string) {
	a.begin()
	_ = a.tar.WriteHeader(&tar.Header{Name: name + "/", Typeflag: tar.TypeDir, Mode: 0o755})
}

func (a *archive) begin() {
	if a.tar == nil {
		a.tar = tar.NewWriter(&a.buffer)
	}
}

// blob adds a part of the image under its digest.
func (a *archive) blob(mediaType string, data []byte) descriptor {
	sum := fmt.Sprintf("%x", sha256.Sum256(data))
	a.file("blobs/sha256/"+sum, data)
	return descriptor{MediaType: mediaType, Digest: "sha256:" + sum, Size: len(data)}
}

func (a *archive) bytes() []byte {
	_ = a.tar.Close()
	return a.buffer.Bytes()
}

// inImage splits PATH=FILE. A FILE alone has its own name in the image.
func inImage(arg string) (name, from string) {
	if name, from, ok := strings.Cut(arg, "="); ok {
		return name, from
	}
	return path.Base(filepath.ToSlash(arg)), arg
}

// packLayer returns an archive of files, each given as PATH=FILE or FILE, with the directories that they are in. All
// are of root.
func packLayer(files []string) ([]byte, error) {
	var a archive
	made := map[string]bool{".": true}
	for _, f := range files {
		name, from := inImage(f)
		if !filepath.IsLocal(name) {
			return nil, fmt.Errorf("%q is no path in an image", name)
		}
		if dir := path.Dir(name); !made[dir] {
			made[dir] = true
			a.dir(dir)
		}
		text, err := os.ReadFile(from)
		if err != nil {
			return nil, err
		}
		a.file(name, text)
	}
	return a.bytes(), nil
}
