package node

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) {
	if os.Getenv(killedEnv) != "" {
		playKilled()
	}
	goleak.VerifyTestMain(m)
}

// conflistText is a conflist as users write one.
const conflistText = `{"cniVersion": "1.1.0", "name": "lan", "plugins": [
	{"type": "bridge", "bridge": "br0", "ipam": {"type": "bcsnet-ipam"}},
	{"type": "bcsnet-announce"}]}`

// newOptions returns the options of a node in a directory of a test's own, with what is mounted into the pod.
func newOptions(t testing.TB) Options {
	t.Helper()
	o := optionsIn(t.TempDir())
	o.Every.fill()
	for _, dir := range []string{o.ProgramsDir, o.BinDir, o.NetDir} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	put(t, filepath.Join(o.ProgramsDir, "bcsnet-ipam"), "the first release of ipam")
	put(t, filepath.Join(o.ProgramsDir, "bcsnet-announce"), "the first release of announce")
	put(t, o.CAFile, "a certificate")
	put(t, o.TokenFile, "a token")
	put(t, o.ConflistFile, conflistText)
	return o
}

// optionsIn returns the options of a node whose directories are all in one.
func optionsIn(dir string) Options {
	at := func(name string) string { return filepath.Join(dir, name) }
	return Options{
		Node: "node-1", Host: "10.0.0.11", ProgramsDir: at("programs"), BinDir: at("bin"), NetDir: at("net.d"),
		ConfigDir: at("net.d/bcsnet.d"), DataDir: at("data"), RunDir: at("run"), ConflistFile: at("conflist"),
		ConflistName: "10-bcsnet.conflist", CAFile: at("mounted-ca"), TokenFile: at("mounted-token"),
		Service: "bcsnet-system/bcsnet-controller", ServicePort: "allocator", HTTPBindAddress: "0", LogLevel: "debug",
		LogOutput: io.Discard, Now: time.Now,
	}
}

func put(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// newInstaller returns an installer whose allocator answers with an error, or nil.
func newInstaller(o Options, answer error) *installer {
	return &installer{
		options: o, log: slog.New(slog.DiscardHandler), ask: func(context.Context) error { return answer },
		failed: func(string) {}, said: map[string]bool{},
	}
}

// knownFacts returns those of a cluster.
func knownFacts() facts { return facts{cluster: "c1", endpoints: []string{"10.0.0.1:8090"}} }

var errSilent = errors.New("no replica answers")

// filesOf returns what a directory has, by name, but for directories.
func filesOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, e := range entries {
		if e.IsDir() {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all[e.Name()] = string(text)
	}
	return all
}

// tmpfs puts a file system of some octets on a directory. Root writes everywhere else.
func tmpfs(t *testing.T, dir, size string) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("skipped: file systems are mounted by root alone")
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Skipf("skipped: no file system can be mounted here: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
}

func readOnly(t *testing.T, dir string) {
	t.Helper()
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
}
