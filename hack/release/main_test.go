package main

import (
	"bytes"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

const tag = "v1.2.3"

// TestRelease makes a release for this machine's platform and uses each part of it as its users do.
func TestRelease(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("packages are for Linux")
	}
	t.Setenv("SOURCE_DATE_EPOCH", "1700000000")
	first := made(t)
	base := "bcsnetctl_v1.2.3_linux_" + runtime.GOARCH
	want := []string{
		"NOTES.md", "SHA256SUMS", "bcsnet-1.2.3.tgz", "bcsnet-schemas_v1.2.3.tar.gz", "bcsnet.yaml", base + ".deb", base + ".rpm", base + ".tar.gz", "install.yaml",
		"kubectl-bcsnet_linux_" + runtime.GOARCH + ".tar.gz",
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, files(t, first)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	runs(t, first, "sha256sum", "--check", "--strict", "SHA256SUMS")
	if sums, _ := os.ReadFile(filepath.Join(first, "SHA256SUMS")); bytes.Count(sums, []byte("\n")) != len(want)-1 {
		t.Errorf("checksums:\n%s", sums)
	}
	t.Run("archive", func(t *testing.T) { checkArchive(t, filepath.Join(first, base+".tar.gz"), base) })
	t.Run("krew", func(t *testing.T) { checkKrew(t, first) })
	t.Run("deb", func(t *testing.T) { checkDeb(t, filepath.Join(first, base+".deb")) })
	t.Run("rpm", func(t *testing.T) { checkRPM(t, filepath.Join(first, base+".rpm")) })
	t.Run("schemas", func(t *testing.T) { checkSchemas(t, filepath.Join(first, "bcsnet-schemas_v1.2.3.tar.gz")) })
	t.Run("manifests", func(t *testing.T) { checkManifests(t, first) })
	t.Run("reproducible", func(t *testing.T) { checkReproducible(t, first) })
}

// checkReproducible makes the release again, and compares every byte.
func checkReproducible(t *testing.T, first string) {
	t.Helper()
	if testing.Short() {
		t.Skip("builds all again: make test-all")
	}
	second := made(t)
	for _, name := range files(t, first) {
		if strings.HasSuffix(name, ".tgz") || name == "SHA256SUMS" {
			continue // Helm writes the times of the sources into its archive
		}
		a, err := os.ReadFile(filepath.Join(first, name))
		if err != nil {
			t.Fatal(err)
		}
		if b, err := os.ReadFile(filepath.Join(second, name)); err != nil || !bytes.Equal(a, b) {
			t.Errorf("%s is not the same from the same sources: %v", name, err)
		}
	}
}

func made(t *testing.T) string {
	t.Helper()
	out := t.TempDir()
	var log bytes.Buffer
	args := []string{"-version", tag, "-o", out, "-platforms", "linux/" + runtime.GOARCH}
	if err := run(t.Context(), args, &log); err != nil {
		t.Fatalf("%v\n%s", err, &log)
	}
	return out
}

func files(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// runs runs a command in a directory and returns what it prints.
func runs(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v: %s", name, args, err, out)
	}
	return string(out)
}

// checkArchive unpacks the archive and runs what it has.
func checkArchive(t *testing.T, archive, base string) {
	t.Helper()
	dir := t.TempDir()
	runs(t, dir, "tar", "-xzf", archive)
	if got := runs(t, dir, filepath.Join(dir, base, "bcsnetctl"), "version", "--client"); !strings.Contains(got, tag) {
		t.Errorf("bcsnetctl is %q", got)
	}
	for name, part := range map[string]string{
		"completions/bcsnetctl.bash": "__start_bcsnetctl", "completions/_bcsnetctl": "#compdef bcsnetctl",
		"completions/bcsnetctl.fish": "fish", "completions/bcsnetctl.ps1": "Register-ArgumentCompleter",
		"man/bcsnetctl-install.1": ".TH", "LICENSE": "Apache License", "CHANGELOG.md": "Changelog", "kubectl_complete-bcsnet": "__complete",
	} {
		text, err := os.ReadFile(filepath.Join(dir, base, name))
		if err != nil || !strings.Contains(string(text), part) {
			t.Errorf("%s is without %q: %v", name, part, err)
		}
	}
	runs(t, filepath.Join(dir, base, "completions"), "bash", "-n", "bcsnetctl.bash")
}

// checkKrew installs the plugin as krew does: it checks the sum, unpacks into a directory of the version, copies the
// files that the manifest names, links the program and has kubectl find it.
func checkKrew(t *testing.T, dir string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "bcsnet.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var manifest struct {
		Spec struct {
			Version   string
			Platforms []struct {
				URI, Sha256, Bin string
				Files            []struct{ From, To string }
				Selector         struct{ MatchLabels map[string]string }
			}
		}
	}
	if err := yaml.Unmarshal(text, &manifest); err != nil {
		t.Fatal(err)
	}
	if manifest.Spec.Version != tag || len(manifest.Spec.Platforms) != 1 {
		t.Fatalf("the manifest is\n%s", text)
	}
	p := manifest.Spec.Platforms[0]
	if want := map[string]string{"os": "linux", "arch": runtime.GOARCH}; !maps.Equal(p.Selector.MatchLabels, want) {
		t.Errorf("the selector is %v", p.Selector.MatchLabels)
	}
	archive := filepath.Join(dir, filepath.Base(p.URI))
	if sum, err := checksum(archive); err != nil || sum != p.Sha256 {
		t.Errorf("the checksum is %s, the manifest has %s: %v", sum, p.Sha256, err)
	}
	root := t.TempDir()
	unpacked, store, bin := filepath.Join(root, "unpacked"), filepath.Join(root, "store", "bcsnet", tag), filepath.Join(root, "bin")
	for _, d := range []string{unpacked, store, bin} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	runs(t, unpacked, "tar", "-xzf", archive)
	for _, f := range p.Files {
		runs(t, unpacked, "cp", "-p", f.From, filepath.Join(store, f.To))
	}
	if err := os.Symlink(filepath.Join(store, p.Bin), filepath.Join(bin, "kubectl-bcsnet")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(store, shim), filepath.Join(bin, shim)); err != nil {
		t.Fatal(err)
	}
	kubectl, err := filepath.Abs(filepath.Join("..", "..", "bin", "kube", "kubectl"))
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	t.Setenv("KUBECONFIG", filepath.Join(root, "none"))
	if got := runs(t, root, kubectl, "bcsnet", "version", "--client"); !strings.Contains(got, tag) {
		t.Errorf("kubectl bcsnet is %q", got)
	}
	if got := runs(t, root, kubectl, "__complete", "bcsnet", "pool", "cre"); !strings.Contains(got, "create") {
		t.Errorf("kubectl completes %q", got)
	}
}

// checkDeb unpacks the package as dpkg does.
func checkDeb(t *testing.T, deb string) {
	t.Helper()
	if _, err := exec.LookPath("dpkg-deb"); err != nil {
		t.Skip("there is no dpkg-deb")
	}
	if got := strings.Fields(runs(t, "", "dpkg-deb", "--show", "--showformat", "${Package} ${Version} ${Architecture}", deb)); !slices.Equal(
		got, []string{"bcsnetctl", "1.2.3", runtime.GOARCH}) {
		t.Errorf("it is %v", got)
	}
	dir := t.TempDir()
	runs(t, dir, "dpkg-deb", "-x", deb, ".")
	if got := runs(t, dir, "usr/bin/bcsnetctl", "version", "--client"); !strings.Contains(got, tag) {
		t.Errorf("bcsnetctl is %q", got)
	}
	for _, name := range []string{
		"usr/share/bash-completion/completions/bcsnetctl", "usr/share/zsh/site-functions/_bcsnetctl",
		"usr/share/man/man1/bcsnetctl-pool-list.1", "usr/bin/kubectl-bcsnet", "usr/bin/kubectl_complete-bcsnet",
	} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
}

// checkRPM reads the lead of the package, and lists its files where there is rpm.
func checkRPM(t *testing.T, rpm string) {
	t.Helper()
	f, err := os.Open(rpm)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lead := make([]byte, 96)
	if _, err := io.ReadFull(f, lead); err != nil {
		t.Fatal(err)
	}
	name, _, _ := bytes.Cut(lead[10:76], []byte{0})
	if !bytes.HasPrefix(lead, []byte{0xed, 0xab, 0xee, 0xdb}) || !strings.HasPrefix(string(name), "bcsnetctl-1.2.3") {
		t.Errorf("the lead is %q", lead)
	}
	if _, err := exec.LookPath("rpm"); err == nil {
		if got := runs(t, "", "rpm", "-qpl", rpm); !strings.Contains(got, "/usr/share/man/man1/bcsnetctl-pool-list.1") {
			t.Errorf("its files are\n%s", got)
		}
	}
}

// checkManifests finds the image of the release in install.yaml and in the chart.
func checkManifests(t *testing.T, dir string) {
	t.Helper()
	const image = "image: ghcr.io/bcsnet/bcsnet-controller:" + tag + "\n"
	text, err := os.ReadFile(filepath.Join(dir, "install.yaml"))
	if err != nil || !strings.Contains(string(text), image) {
		t.Errorf("install.yaml is without the image: %v", err)
	}
	helm := filepath.Join("..", "..", "bin", "tools", "helm")
	if got := runs(t, "", helm, "template", "bcsnet", filepath.Join(dir, "bcsnet-1.2.3.tgz"), "-n", "bcsnet-system"); !strings.Contains(got, image) {
		t.Error("the chart is without the image")
	}
	notes, err := os.ReadFile(filepath.Join(dir, "NOTES.md"))
	if err != nil || !strings.HasPrefix(string(notes), "### ") || strings.Contains(string(notes), "](docs/") {
		t.Errorf("the notes begin with %.60q: %v", notes, err)
	}
}

// TestSection finds the notes of a version.
func TestSection(t *testing.T) {
	t.Parallel()
	const changelog = "# Changelog\n\n## [Unreleased]\n\n- new\n\n## [1.2.3] - 2026-01-01\n\n- old\n\n## [1.2.2]\n\n## [1.2.1]\n\n- older\n"
	for version, want := range map[string]string{"1.2.3": "- old\n", "1.2.1": "- older\n", "1.3.0": "- new\n", "1.2.2": "- new\n"} {
		if got, err := section(changelog, version); err != nil || got != want {
			t.Errorf("%s: %q, %v", version, got, err)
		}
	}
	if _, err := section("# Changelog\n", "1.0.0"); err == nil {
		t.Error("an empty changelog is no error")
	}
}

// TestRefused checks what is refused before anything is built.
func TestRefused(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"no version":  {nil, `"" is not a version of a release`},
		"a revision":  {[]string{"-version", "bf0103b"}, "hint: make release VERSION=v1.2.3"},
		"no platform": {[]string{"-version", tag, "-platforms", "linux"}, `"linux" is not a platform`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := run(t.Context(), append(test.args, "-o", t.TempDir()), io.Discard)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
}

// checkSchemas validates objects by the schemas as kubeconform does: those that the documents show are right, and a
// field that the kind has not, a wrong type and a missing field are found.
func checkSchemas(t *testing.T, archive string) {
	t.Helper()
	tool, err := filepath.Abs(filepath.Join("..", "..", "bin", "tools", "kubeconform"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	runs(t, dir, "tar", "-xzf", archive)
	const pool = "apiVersion: networkextension.bkbcs.tencent.com/v1\nkind: BCSNetPool\nmetadata: {name: p}\nspec: "
	for spec, message := range map[string]string{
		"{net: 10.0.0.0, mask: 24, availableIPs: [10.0.0.9]}":             "",
		"{net: 10.0.0.0, mask: 24, availableIPs: [10.0.0.9], hosst: [a]}": "additional properties 'hosst' not allowed",
		"{net: 10.0.0.0, mask: twenty}":                                   "want integer",
		"{mask: 24}":                                                      "missing property 'net'",
	} {
		cmd := exec.Command(tool, "-strict", "-schema-location",
			filepath.Join(dir, "{{.Group}}", "{{.ResourceKind}}_{{.ResourceAPIVersion}}.json"))
		cmd.Stdin = strings.NewReader(pool + spec)
		out, err := cmd.CombinedOutput()
		if (err == nil) != (message == "") || !strings.Contains(string(out), message) {
			t.Errorf("%s: %v: %s", spec, err, out)
		}
	}
	root := filepath.Join(filepath.Dir(tool), "..", "..")
	runs(t, dir, tool, "-strict", "-schema-location",
		filepath.Join(dir, "{{.Group}}", "{{.ResourceKind}}_{{.ResourceAPIVersion}}.json"), "-ignore-missing-schemas",
		filepath.Join(root, "examples"), filepath.Join(root, "config", "samples"))
}
