package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/bcsnet/bcsnet/test/controlplane"
)

// archive returns an archive as envtest publishes it. Its programs are scripts.
func archive(t *testing.T, names ...string) []byte {
	t.Helper()
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	files := tar.NewWriter(zip)
	for _, name := range names {
		script := "#!/bin/sh\necho " + name + "\n"
		header := &tar.Header{Name: "controller-tools/envtest/" + name, Mode: 0o755, Size: int64(len(script)), Typeflag: tar.TypeReg}
		if err := files.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if _, err := files.Write([]byte(script)); err != nil {
			t.Fatal(err)
		}
	}
	if err := files.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// checkout makes a directory that has only the files of this module that kube.sh reads. Its build.sh builds scripts.
func checkout(t *testing.T) string {
	t.Helper()
	root, err := controlplane.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	build := "#!/bin/sh\nmkdir -p bin/kube\nfor p; do echo built >bin/kube/$p; chmod +x bin/kube/$p; done\n"
	for path, content := range map[string]string{"hack/kube/build.sh": build} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(path)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, path), []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{"hack/demo/kube.sh", "hack/kube/kubernetes/go.mod", "bin/tools/setup-envtest"} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(path)), 0o755); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, path), data, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestKube tries each way to the programs of the demo, with an index of its own.
func TestKube(t *testing.T) {
	whole := archive(t, "etcd", "kube-apiserver", "kubectl")
	for name, c := range map[string]struct {
		archive []byte
		damaged bool
		hangs   bool
		minor   string
		env     string
		built   bool
	}{
		"from the index":              {archive: whole},
		"asked to build":              {archive: whole, env: "DEMO_SOURCE=1", built: true},
		"another checksum":            {archive: whole, damaged: true, built: true},
		"an archive without kubectl":  {archive: archive(t, "etcd", "kube-apiserver"), built: true},
		"an index of other releases":  {archive: whole, minor: "1.9", built: true},
		"an index that is not there":  {built: true},
		"an index that hangs":         {hangs: true, built: true},
		"a directory of the caller's": {archive: whole, env: controlplane.AssetsEnv + "=/opt/kube"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := checkout(t)
			module, err := os.ReadFile(filepath.Join(dir, "hack/kube/kubernetes/go.mod"))
			if err != nil {
				t.Fatal(err)
			}
			_, after, _ := strings.Cut(string(module), "\tk8s.io/kubernetes v")
			parts := strings.SplitN(after, ".", 3)
			minor := parts[0] + "." + parts[1]
			if c.minor != "" {
				minor = c.minor
			}
			sum := sha512.Sum512(c.archive)
			if c.damaged {
				sum[0]++
			}
			mux := http.NewServeMux()
			server := httptest.NewServer(mux)
			defer server.Close()
			if c.hangs {
				mux.HandleFunc("GET /index.yaml", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
			}
			if c.archive != nil {
				mux.HandleFunc("GET /index.yaml", func(w http.ResponseWriter, _ *http.Request) {
					file := fmt.Sprintf("envtest-v%s.1-%s-%s.tar.gz", minor, runtime.GOOS, runtime.GOARCH)
					fmt.Fprintf(w, "releases:\n  v%s.1:\n    %s:\n      hash: %s\n      selfLink: %s/%s\n", minor, file,
						hex.EncodeToString(sum[:]), server.URL, file)
				})
				mux.HandleFunc("GET /{file}", func(w http.ResponseWriter, _ *http.Request) { w.Write(c.archive) }) //nolint:errcheck // no handler can mend it
			}
			cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "hack/demo/kube.sh"))
			cmd.Env = append(os.Environ(), "ENVTEST_INDEX="+server.URL+"/index.yaml", "ENVTEST_SECONDS=2", controlplane.AssetsEnv+"=", c.env)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			chosen, err := os.ReadFile(filepath.Join(dir, "bin/.demo-kube"))
			if err != nil {
				t.Fatal(err)
			}
			got := strings.TrimSpace(string(chosen))
			switch {
			case c.built:
				if want := filepath.Join(dir, "bin/kube"); got != want {
					t.Errorf("the programs are in %s, not in %s", got, want)
				}
			case strings.HasPrefix(c.env, controlplane.AssetsEnv):
				if got != "/opt/kube" {
					t.Errorf("the programs are in %s, not in /opt/kube", got)
				}
			default:
				out, err := exec.CommandContext(t.Context(), filepath.Join(got, "kubectl")).Output()
				if string(out) != "kubectl\n" || err != nil {
					t.Errorf("%s/kubectl: %q, %v", got, out, err)
				}
			}
		})
	}
}
