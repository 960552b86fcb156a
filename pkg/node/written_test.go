package node

import (
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// named returns the options of a pod whose conflist has another name.
func (o Options) named(name string) Options {
	o.ConflistName = name
	return o
}

// conflists returns the names in the runtime's directory.
func conflists(t *testing.T, o Options) []string {
	t.Helper()
	return slices.Sorted(maps.Keys(filesOf(t, o.NetDir)))
}

// TestRenamed gives the conflist another name, before and behind the first one, and the first one again: the node has
// one conflist, that of the last name. An earlier release kept no list of its conflists, and others' files stay.
func TestRenamed(t *testing.T) {
	o := newInstalled(t)
	other := filepath.Join(o.NetDir, "20-other.conflist")
	put(t, other, conflistText)
	if err := os.Remove(filepath.Join(o.ConfigDir, writtenFile)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"05-lan.conflist", "99-lan.conflist", "10-bcsnet.conflist"} {
		if err := newInstaller(o.named(name), nil).install(t.Context(), knownFacts()); err != nil {
			t.Fatal(err)
		}
		if got, want := conflists(t, o), slices.Sorted(slices.Values([]string{name, "20-other.conflist"})); !slices.Equal(got, want) {
			t.Errorf("there are %v, want %v", got, want)
		}
	}
	if err := os.Remove(other); err != nil {
		t.Fatal(err)
	}
	wantInstalled(t, o, "c1")
}

// TestRenamedKilledAtEachStep kills an installation under a new name after each of its steps: the node has a conflist
// at any moment, and the next installation does the rest. So does a removal.
func TestRenamedKilledAtEachStep(t *testing.T) {
	for _, step := range Steps() {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			o := newOptions(t)
			if err := newInstaller(o.named("05-lan.conflist"), nil).install(t.Context(), knownFacts()); err != nil {
				t.Fatal(err)
			}
			killAt(t, o, "install", step)
			if len(conflists(t, o)) == 0 {
				t.Error("there is no conflist")
			}
			removed := copyOf(t, o)
			if err := removed.removeFiles(t.Context(), quiet); err != nil {
				t.Error(err)
			}
			wantRemoved(t, removed)
			if err := newInstaller(o, nil).install(t.Context(), knownFacts()); err != nil {
				t.Error(err)
			}
			wantInstalled(t, o, "c1")
		})
	}
}

// copyOf returns the options of another node that has what a node has.
func copyOf(t *testing.T, o Options) Options {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Dir(o.BinDir))); err != nil {
		t.Fatal(err)
	}
	c := optionsIn(dir)
	c.Every.fill()
	return c
}

// TestNoConflistAnyMore has a pod without a conflist, as where Multus names the networks of pods: the earlier one goes
// once the node has another network configuration, and no pod an address by the earlier one.
func TestNoConflistAnyMore(t *testing.T) {
	o := newInstalled(t)
	o.ConflistFile = ""
	install := func(want ...string) {
		t.Helper()
		var log strings.Builder
		i := newInstaller(o, nil)
		i.log = slog.New(slog.NewTextHandler(&log, nil))
		if err := i.install(t.Context(), knownFacts()); err != nil {
			t.Fatal(err)
		}
		if got := conflists(t, o); !slices.Equal(got, want) {
			t.Errorf("there are %v, want %v", got, want)
		}
		if stays := slices.Contains(want, "10-bcsnet.conflist"); stays != strings.Contains(log.String(), "is not removed yet") {
			t.Errorf("the log:\n%s", log.String())
		}
	}
	install("10-bcsnet.conflist") // the node has no other
	put(t, filepath.Join(o.NetDir, "00-multus.conf"), `{"cniVersion":"1.0.0","name":"multus","type":"multus",
		"clusterNetwork":"/etc/cni/net.d/10-bcsnet.conflist"}`)
	install("00-multus.conf", "10-bcsnet.conflist") // this one goes by it
	put(t, filepath.Join(o.NetDir, "00-multus.conf"), `{"cniVersion":"1.0.0","name":"multus","type":"multus"}`)
	dir := filepath.Join(o.RunDir, "attach")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	attached := filepath.Join(dir, "3f4e-eth0.json")
	put(t, attached, `{"containerID":"3f4e","ifName":"eth0","cniNetwork":"lan","addresses":["10.0.0.21"]}`)
	install("00-multus.conf", "10-bcsnet.conflist")
	if err := os.Remove(attached); err != nil {
		t.Fatal(err)
	}
	install("00-multus.conf")
	install("00-multus.conf")
	if err := o.removeFiles(t.Context(), quiet); err != nil {
		t.Error(err)
	}
}

// TestRemoveWhileOthersNameThePlugins has configurations that bcsnet did not write, with its plugins in each of the
// places that a program reads them from: the plugins stay, with all that an ADD needs, until the file goes. The
// condition says so where such a file names a plugin that is not there.
func TestRemoveWhileOthersNameThePlugins(t *testing.T) {
	for name, c := range map[string]struct{ file, text, missing string }{
		"a copy of ours":     {"05-lan.conflist", conflistText, "bridge"},
		"a single plugin":    {"05-lan.conf", `{"cniVersion":"1.0.0","name":"lan","type":"macvlan","ipam":{"type":"bcsnet-ipam"}}`, "macvlan"},
		"the chained plugin": {"05-lan.conflist", `{"cniVersion":"1.0.0","name":"lan","plugins":[{"type":"bcsnet-announce"}]}`, ""},
		"a delegate, as thick Multus writes it": {"00-multus.conf",
			`{"cniVersion":"0.3.1","name":"multus","type":"multus-shim","delegates":[` + conflistText + `]}`, "multus-shim"},
	} {
		t.Run(name, func(t *testing.T) {
			o := newInstalled(t)
			if text := o.broken(); text != "" {
				t.Errorf("before: %s", text)
			}
			path := filepath.Join(o.NetDir, c.file)
			put(t, path, c.text)
			if text := o.broken(); (text == "") != (c.missing == "") || !strings.Contains(text, c.missing) {
				t.Errorf("it lacks %q: %s", c.missing, text)
			}
			err := o.removeFiles(t.Context(), quiet)
			if err == nil || !strings.Contains(err.Error(), path+", which bcsnet did not write, names them") {
				t.Errorf("%v", err)
			}
			if got := conflists(t, o); !slices.Equal(got, []string{c.file}) {
				t.Errorf("conflists: %v", got)
			}
			if got := filesOf(t, o.BinDir); len(got) != 2 {
				t.Errorf("plugins: %v", got)
			}
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			if err := o.removeFiles(t.Context(), quiet); err != nil {
				t.Error(err)
			}
			wantRemoved(t, o)
		})
	}
}
