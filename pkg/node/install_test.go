package node

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

const c1 = `{"cluster":"c1","node":"node-1","host":"10.0.0.11","replicas":["https://10.0.0.1:8090"],` +
	`"serverName":"bcsnet-controller.bcsnet-system.svc","dataDir":"DATA","runDir":"RUN"}` + "\n"

// configText returns config.json of a cluster.
func configText(o Options, cluster string) string {
	return strings.NewReplacer("c1", cluster, "DATA", o.DataDir, "RUN", o.RunDir).Replace(c1)
}

// wantInstalled compares the node with one on which all is installed.
func wantInstalled(t *testing.T, o Options, cluster string) {
	t.Helper()
	conflist, err := os.ReadFile(o.ConflistFile)
	if err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]map[string]string{
		o.BinDir: filesOf(t, o.ProgramsDir),
		o.ConfigDir: {"config.json": configText(o, cluster), "ca.crt": "a certificate", "token": "a token",
			"conflists.json": `["10-bcsnet.conflist"]` + "\n"},
		o.NetDir: {"10-bcsnet.conflist": string(conflist)},
	} {
		if diff := cmp.Diff(want, filesOf(t, dir)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", dir, diff)
		}
	}
	for path, want := range map[string]os.FileMode{
		filepath.Join(o.BinDir, "bcsnet-ipam"): 0o755, filepath.Join(o.ConfigDir, "token"): 0o600, o.ConfigDir: 0o700,
	} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
}

// TestInstall installs on an empty node, in the order that is promised, and writes nothing where all is in place.
func TestInstall(t *testing.T) {
	o := newOptions(t)
	var steps []string
	o.Reached = func(step string) { steps = append(steps, step) }
	i := newInstaller(o, nil)
	if err := i.install(t.Context(), knownFacts()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Steps(), steps); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
	wantInstalled(t, o, "c1")
	before := inodes(t, o)
	if err := newInstaller(o, errSilent).install(t.Context(), facts{}); err != nil {
		t.Errorf("once more, without a cluster that answers: %v", err)
	}
	if diff := cmp.Diff(before, inodes(t, o)); diff != "" {
		t.Errorf("files were written again (-before +after):\n%s", diff)
	}
}

// inodes returns the numbers of all installed files.
func inodes(t *testing.T, o Options) map[string]uint64 {
	t.Helper()
	all := map[string]uint64{}
	for _, dir := range []string{o.BinDir, o.ConfigDir, o.NetDir} {
		for name := range filesOf(t, dir) {
			var stat unix.Stat_t
			if err := unix.Stat(filepath.Join(dir, name), &stat); err != nil {
				t.Fatal(err)
			}
			all[name] = stat.Ino
		}
	}
	return all
}

// TestInstallIncomplete has each thing missing or wrong in turn. The error names it, no conflist comes, and all else is
// installed as far as it can be.
func TestInstallIncomplete(t *testing.T) {
	for name, c := range map[string]struct {
		change func(t *testing.T, o *Options)
		facts  facts
		answer error
		want   string
		// installed are the files beside the plugins.
		installed []string
	}{
		"no answer": {facts: knownFacts(), answer: errSilent, want: "before the allocator has answered",
			installed: []string{"ca.crt", "config.json", "token"}},
		"the API server is silent": {want: "UID of kube-system is not known yet", installed: []string{"ca.crt", "token"}},
		"no replica":               {facts: facts{cluster: "c1"}, want: "no EndpointSlice", installed: []string{"ca.crt", "token"}},
		"no token": {facts: knownFacts(), want: "what token is copied from", installed: []string{"ca.crt"},
			change: func(t *testing.T, o *Options) {
				t.Helper()
				if err := os.Remove(o.TokenFile); err != nil {
					t.Fatal(err)
				}
			}},
		"an empty CA": {facts: knownFacts(), want: "it is empty", installed: []string{"token"},
			change: func(t *testing.T, o *Options) {
				t.Helper()
				put(t, o.CAFile, "")
			}},
		"no ConfigMap of the CA": {facts: knownFacts(), want: "there is no ConfigMap bcsnet-system/bcsnet-controller-ca",
			installed: []string{"token"}, change: byConfigMap},
		"no plugins": {facts: knownFacts(), want: "hint: --programs-dir", installed: []string{"ca.crt", "config.json", "token"},
			change: func(_ *testing.T, o *Options) { o.ProgramsDir += "-elsewhere" }},
		"a wrong conflist": {facts: knownFacts(), want: "it is not a network configuration",
			installed: []string{"ca.crt", "config.json", "token"},
			change: func(t *testing.T, o *Options) {
				t.Helper()
				put(t, o.ConflistFile, `{"cniVersion": "1.1.0", "na`)
			}},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOptions(t)
			if c.change != nil {
				c.change(t, &o)
			}
			err := newInstaller(o, c.answer).install(t.Context(), c.facts)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %s", err, c.want)
			}
			if got := slices.Sorted(maps.Keys(filesOf(t, o.ConfigDir))); !slices.Equal(got, c.installed) {
				t.Errorf("installed are %v, want %v", got, c.installed)
			}
			if got := filesOf(t, o.NetDir); len(got) > 0 || o.installed() {
				t.Errorf("there is a conflist: %v", got)
			}
		})
	}
}

// byConfigMap has the CA come from the ConfigMap in place of a file.
func byConfigMap(_ *testing.T, o *Options) {
	o.CAFile, o.CAConfigMap = "", "bcsnet-system/bcsnet-controller-ca"
}

// TestCAFromConfigMap follows the CA of the ConfigMap: plugins are sent over https once it is there, and not before.
func TestCAFromConfigMap(t *testing.T) {
	o := newOptions(t)
	if err := newInstaller(o, nil).install(t.Context(), knownFacts()); err != nil {
		t.Fatal(err)
	}
	plain := o
	plain.CAFile, plain.TokenFile = "", ""
	if err := newInstaller(plain, nil).install(t.Context(), knownFacts()); err != nil {
		t.Fatal(err)
	}
	before := filesOf(t, o.ConfigDir)["config.json"]
	if err := removeAll(filepath.Join(o.ConfigDir, caFile)); err != nil || !strings.Contains(before, "http://10.0.0.1:8090") {
		t.Fatalf("%v, %s", err, before)
	}
	byConfigMap(t, &o)
	f := knownFacts()
	err := newInstaller(o, nil).install(t.Context(), f)
	if !errors.Is(err, errFacts) || filesOf(t, o.ConfigDir)["config.json"] != before {
		t.Errorf("without the ConfigMap: %v, and config.json is %s", err, filesOf(t, o.ConfigDir)["config.json"])
	}
	for _, ca := range []string{"a certificate", "a certificate and the next one", "a certificate"} {
		f.ca = ca
		err := newInstaller(o, nil).install(t.Context(), f)
		if got := filesOf(t, o.ConfigDir)[caFile]; err != nil || got != ca {
			t.Errorf("%v, and the node has %q, want %q", err, got, ca)
		}
	}
	wantInstalled(t, o, "c1")
}

// TestInstalledStays has a node that is in order, and what goes wrong later: what it has stays, and is good.
func TestInstalledStays(t *testing.T) {
	for name, c := range map[string]struct {
		change func(t *testing.T, o *Options)
		facts  facts
		answer error
		want   string
	}{
		"no answer":          {facts: knownFacts(), answer: errSilent},
		"no API server":      {answer: errSilent},
		"no replica is left": {facts: facts{cluster: "c1"}, answer: errSilent},
		"no CA is known":     {facts: knownFacts(), answer: errSilent, change: byConfigMap},
		"the token is gone": {facts: knownFacts(), want: "keeps the one that it has", change: func(t *testing.T, o *Options) {
			t.Helper()
			if err := os.Remove(o.TokenFile); err != nil {
				t.Fatal(err)
			}
		}},
		"a new conflist is wrong": {facts: knownFacts(), want: "an earlier one stays", change: func(t *testing.T, o *Options) {
			t.Helper()
			put(t, o.ConflistFile, "{}")
		}},
		"a new conflist, and no answer": {facts: knownFacts(), answer: errSilent, want: "before the allocator has answered",
			change: func(t *testing.T, o *Options) {
				t.Helper()
				put(t, o.ConflistFile, strings.ReplaceAll(string(must(os.ReadFile(o.ConflistFile))), "br0", "br1"))
			}},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOptions(t)
			if err := newInstaller(o, nil).install(t.Context(), knownFacts()); err != nil {
				t.Fatal(err)
			}
			before := inodes(t, o)
			if c.change != nil {
				c.change(t, &o)
			}
			err := newInstaller(o, c.answer).install(t.Context(), c.facts)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%v, want %q", err, c.want)
			}
			if diff := cmp.Diff(before, inodes(t, o)); diff != "" {
				t.Errorf("(-before +after):\n%s", diff)
			}
		})
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// TestAnotherCluster has a node that was one of a cluster that is gone: its conflist is withdrawn until this one's
// allocator has answered.
func TestAnotherCluster(t *testing.T) {
	o := newOptions(t)
	if err := newInstaller(o, nil).install(t.Context(), facts{cluster: "c0", endpoints: []string{"10.9.9.9:8090"}}); err != nil {
		t.Fatal(err)
	}
	if err := newInstaller(o, errSilent).install(t.Context(), facts{cluster: "c1"}); err == nil {
		t.Error("no error without a replica of the new cluster")
	}
	if got := filesOf(t, o.NetDir); len(got) > 0 {
		t.Errorf("%v is there", got)
	}
	if err := newInstaller(o, nil).install(t.Context(), knownFacts()); err != nil {
		t.Error(err)
	}
	wantInstalled(t, o, "c1")
}

// TestOneInstaller has two processes on one node: the second one does nothing until the first one is done.
func TestOneInstaller(t *testing.T) {
	o := newOptions(t)
	i := newInstaller(o, nil)
	i.options.Reached = func(step string) {
		if step != stepToken {
			return
		}
		if err := newInstaller(o, nil).install(t.Context(), knownFacts()); err == nil ||
			!strings.Contains(err.Error(), "another process installs here") {
			t.Errorf("the second one: %v", err)
		}
	}
	if err := i.install(t.Context(), knownFacts()); err != nil {
		t.Error(err)
	}
	wantInstalled(t, o, "c1")
}

// TestDirectoryIsReadOnly has the directory of the plugins on a disk that takes nothing: the token is fresh all the
// same.
func TestDirectoryIsReadOnly(t *testing.T) {
	o := newOptions(t)
	if err := newInstaller(o, nil).install(t.Context(), knownFacts()); err != nil {
		t.Fatal(err)
	}
	tmpfs(t, o.BinDir, "64k")
	readOnly(t, o.BinDir)
	put(t, o.TokenFile, "a fresh token")
	err := newInstaller(o, nil).install(t.Context(), knownFacts())
	if !errors.Is(err, unix.EROFS) || !strings.Contains(err.Error(), o.BinDir) {
		t.Errorf("%v", err)
	}
	if got := filesOf(t, o.ConfigDir)["token"]; got != "a fresh token" {
		t.Errorf("the token is %q", got)
	}
}

// killedEnv has the step at which the test binary is killed, and killedDir the directory of the node.
const killedEnv, killedDir = "BCSNET_NODE_TEST_KILLED", "BCSNET_NODE_TEST_DIR"

// playKilled installs, or removes, and ends itself by SIGKILL at a step.
func playKilled() {
	o := optionsIn(os.Getenv(killedDir))
	verb, at, _ := strings.Cut(os.Getenv(killedEnv), " ")
	o.Reached = func(step string) {
		if step == at {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
	var err error
	if verb == "install" {
		err = newInstaller(o, nil).install(context.Background(), knownFacts())
	} else {
		err = o.removeFiles(context.Background(), o.logger())
	}
	fmt.Println("it was not killed", err)
	os.Exit(1)
}

// killAt runs this program until it is killed at a step.
func killAt(t *testing.T, o Options, verb, step string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), killedEnv+"="+verb+" "+step, killedDir+"="+filepath.Dir(o.BinDir))
	out, err := cmd.CombinedOutput()
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("%v: %s", err, out)
	}
}

// TestKilledAtEachStep kills an installation after each of its steps: a conflist is there only with all that its ADDs
// need, and the next installation does the rest.
func TestKilledAtEachStep(t *testing.T) {
	for _, from := range []string{"an empty node", "another cluster's node"} {
		for _, step := range Steps() {
			t.Run(from+", "+step, func(t *testing.T) {
				t.Parallel()
				o := newOptions(t)
				if from != "an empty node" {
					if err := newInstaller(o, nil).install(t.Context(), facts{cluster: "c0", endpoints: []string{"10.9.9.9:8090"}}); err != nil {
						t.Fatal(err)
					}
				}
				killAt(t, o, "install", step)
				if _, err := os.Stat(filepath.Join(o.NetDir, o.ConflistName)); err == nil {
					wantInstalled(t, o, "c1")
				}
				if err := newInstaller(o, nil).install(t.Context(), knownFacts()); err != nil {
					t.Error(err)
				}
				wantInstalled(t, o, "c1")
			})
		}
	}
}
