package main

import (
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx/v2/common"
	"github.com/spdx/tools-golang/spdxlib"

	"github.com/bcsnet/bcsnet/hack/build"
)

// TestImages builds images of two copies of the sources at different places, and compares every byte. The short form
// builds the small one, once.
func TestImages(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "1700000000")
	wanted, places := []string{"bcsnet-node", "bcsnet-controller"}, 2
	if testing.Short() {
		wanted, places = wanted[:1], 1
	}
	here, err := build.SourceOf(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	var built []map[string][]byte
	for range places {
		copied, out := sources(t, here.Root), t.TempDir()
		t.Chdir(copied)
		if err := run(t.Context(), append([]string{"-version", "v1.2.3", "-o", out}, wanted...), io.Discard); err != nil {
			t.Fatal(err)
		}
		built = append(built, read(t, out))
	}
	if len(built[0]) != 3*len(wanted) {
		t.Fatalf("there are %d files", len(built[0]))
	}
	for name, text := range built[0] {
		if !bytes.Equal(text, built[places-1][name]) {
			t.Errorf("%s is not the same from the same sources", name)
		}
	}
	t.Run("controller", func(t *testing.T) {
		if testing.Short() {
			t.Skip("builds the controller for each platform: make test-all")
		}
		checkImage(t, built[0], "bcsnet-controller", nonRoot, []string{"/bcsnet-controller"})
	})
	t.Run("node", func(t *testing.T) {
		checkImage(t, built[0], "bcsnet-node", "0:0", []string{"/programs/bcsnet-announce", "/programs/bcsnet-ipam"})
	})
}

// sources copies what git has of this checkout, and what it does not know yet.
func sources(t *testing.T, root string) string {
	t.Helper()
	dir := t.TempDir()
	script := `git ls-files -z --cached --others --exclude-standard | while IFS= read -r -d '' f; do [ ! -e "$f" ] || printf '%s\0' "$f"; done |
		tar --null -T - -cf - | tar -xf - -C "$0"`
	cmd := exec.Command("bash", "-c", script, dir)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("copy the sources: %v: %s", err, out)
	}
	return dir
}

func read(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]byte{}
	for _, f := range files {
		if all[filepath.Base(f)], err = os.ReadFile(f); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// checkImage checks both platforms of an image, and their SBOMs.
func checkImage(t *testing.T, built map[string][]byte, name, user string, programs []string) {
	t.Helper()
	index := opened(t, built[name+".tar"])
	top, err := index.IndexManifest()
	if err != nil || len(top.Manifests) != 1 {
		t.Fatalf("the layout has %+v: %v", top, err)
	}
	if got, want := top.Manifests[0].Annotations["io.containerd.image.name"], registry+"/"+name+":v1.2.3"; got != want {
		t.Errorf("the name is %s, want %s", got, want)
	}
	platforms, err := index.ImageIndex(top.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(platforms); err != nil {
		t.Error(err)
	}
	manifest, err := platforms.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	var arches []string
	for _, m := range manifest.Manifests {
		arches = append(arches, m.Platform.Architecture)
		img, err := platforms.Image(m.Digest)
		if err != nil {
			t.Fatal(err)
		}
		checkPlatform(t, img, m.Platform.Architecture, user, programs)
		checkSBOM(t, built[name+"_linux_"+m.Platform.Architecture+".spdx.json"], m.Digest, programs)
	}
	if diff := cmp.Diff([]string{"amd64", "arm64"}, arches); diff != "" {
		t.Errorf("platforms (-want +got):\n%s", diff)
	}
}

// opened unpacks an archive.
func opened(t *testing.T, text []byte) v1.ImageIndex {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.Command("tar", "-xf", "-", "-C", dir)
	cmd.Stdin = bytes.NewReader(text)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("unpack: %v: %s", err, out)
	}
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	return index
}

// checkPlatform unpacks the image's files and reads the headers of its programs.
func checkPlatform(t *testing.T, img v1.Image, arch, user string, programs []string) {
	t.Helper()
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.Architecture != arch || config.OS != "linux" || config.Config.User != user {
		t.Errorf("it is for %s/%s as %q", config.OS, config.Architecture, config.Config.User)
	}
	label := config.Config.Labels["org.opencontainers.image.version"]
	if label != "v1.2.3" || config.Config.Labels["org.opencontainers.image.created"] != "2023-11-14T22:13:20Z" {
		t.Errorf("labels: %v", config.Config.Labels)
	}
	dir := t.TempDir()
	cmd := exec.Command("tar", "-xf", "-", "-C", dir)
	files := mutate.Extract(img)
	defer files.Close()
	cmd.Stdin = files
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("unpack: %v: %s", err, out)
	}
	for _, p := range programs {
		path := filepath.Join(dir, p)
		if got, err := platformOf(path); err != nil || got != arch {
			t.Errorf("%s is for %s, want %s: %v", p, got, arch, err)
		}
		if _, err := buildinfo.ReadFile(path); err != nil {
			t.Error(err)
		}
	}
}

// checkSBOM reads an SBOM as others do, and finds the programs and modules in it.
func checkSBOM(t *testing.T, text []byte, image v1.Hash, programs []string) {
	t.Helper()
	d, err := spdxjson.Read(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := spdxlib.ValidateDocument(d); err != nil {
		t.Error(err)
	}
	found := map[string]bool{}
	for _, p := range d.Packages {
		switch p.PrimaryPackagePurpose {
		case "CONTAINER":
			want := []common.Checksum{{Algorithm: common.SHA256, Value: image.Hex}}
			if diff := cmp.Diff(want, p.PackageChecksums); diff != "" {
				t.Errorf("checksum of the image (-want +got):\n%s", diff)
			}
		case "APPLICATION":
			found[p.PackageFileName] = true
		case "LIBRARY":
			found[p.PackageName] = true
			if p.PackageVersion == "" {
				t.Errorf("%s has no version", p.PackageName)
			}
		}
	}
	for _, want := range append(programs, "stdlib", "golang.org/x/sys") {
		if !found[want] {
			t.Errorf("%s is missing", want)
		}
	}
}

// TestProgram packs one program as it is; one for a machine that nobody builds for is refused.
func TestProgram(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command("go", "build", "-o", filepath.Join(dir, "podtool"), "../node/podtool")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	args := []string{"-program", filepath.Join(dir, "podtool"), "-o", filepath.Join(dir, "out.tar")}
	if err := run(t.Context(), args, io.Discard); err == nil || !strings.Contains(err.Error(), "wants -name") {
		t.Errorf("without a name: %v", err)
	}
	args = append(args, "-name", "x/podtool:1", "-cmd", "pause")
	if err := run(t.Context(), append(args, "../out=LICENSE"), io.Discard); err == nil || !strings.Contains(err.Error(), "is not PATH=FILE") {
		t.Errorf("a file outside of the image: %v", err)
	}
	if err := run(t.Context(), append(args, "programs/table.go=table.go"), io.Discard); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "out.tar"))
	if err != nil {
		t.Fatal(err)
	}
	top, err := opened(t, text).IndexManifest()
	if err != nil || top.Manifests[0].Annotations["io.containerd.image.name"] != "x/podtool:1" {
		got, _ := json.Marshal(top)
		t.Errorf("it is %s: %v", got, err)
	}
	script := filepath.Join(dir, "script")
	if err := os.WriteFile(script, []byte("#!/bin/sh\nexit 0 # no program\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	err = run(t.Context(), []string{"-program", script, "-name", "x/y:1", "-o", filepath.Join(dir, "no.tar")}, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "bad magic number") {
		t.Errorf("a script: %v", err)
	}
	if err := run(t.Context(), []string{"nobody"}, io.Discard); err == nil || !strings.Contains(err.Error(), "no image nobody") {
		t.Errorf("an image that is none: %v", err)
	}
}
