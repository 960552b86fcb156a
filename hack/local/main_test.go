package main

import (
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/bcsnet/bcsnet/test/controlplane"
)

// The test binary plays local, as which it starts itself, and the controller, as which local
// starts it.
const playLocal = "LOCAL_TEST_PLAY"

func TestMain(m *testing.M) {
	runNode()
	if os.Getenv(playLocal) == "" {
		os.Exit(m.Run())
	}
	if len(os.Args) > 1 && strings.HasPrefix(os.Args[1], "-") {
		fmt.Fprintln(os.Stderr, playController(os.Args[1:]))
		os.Exit(1)
	}
	main()
}

// playController is ready at once and serves until it is killed.
func playController(args []string) error {
	flags := flag.NewFlagSet("controller", flag.ContinueOnError)
	flags.String("kubeconfig", "", "")
	flags.String("http-bind-address", "", "")
	flags.Bool("plain-http", false, "")
	flags.String("metrics-bind-address", "", "")
	health := flags.String("health-probe-bind-address", "", "")
	if err := flags.Parse(args); err != nil {
		return err
	}
	return http.ListenAndServe(*health, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, os.Getpid())
	}))
}

// local runs one verb in its own directory and returns its output and exit code.
func local(t *testing.T, dir, verb string, flags ...string) (string, int) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, append([]string{verb, "-dir", dir, "-controller", self}, flags...)...)
	cmd.Env = append(os.Environ(), playLocal+"=1")
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	t.Logf("local %s: exit code %d\n%s", verb, cmd.ProcessState.ExitCode(), out)
	return string(out), cmd.ProcessState.ExitCode()
}

func TestUpAndDown(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "it's here") // a name that a shell would trip over
	t.Cleanup(func() { local(t, dir, "down") })

	want := func(verb string, code int, text string) {
		t.Helper()
		if out, got := local(t, dir, verb); got != code || !strings.Contains(out, text) {
			t.Fatalf("%s: exit code %d, want %d and %q", verb, got, code, text)
		}
	}
	want("down", 0, "nothing is up")
	want("status", 1, "nothing is up")
	want("up", 0, "✔ up after")
	want("status", 0, "ready")
	want("up", 0, "already up")

	shell := exec.Command("sh", "-ec", `. "$0/env"; kubectl get --raw /readyz; test -n "$BCSNET_URL"`, dir)
	if out, err := shell.CombinedOutput(); err != nil || string(out) != "ok" {
		t.Errorf("with the environment: %q, %v", out, err)
	}

	// The controller is somebody's pod: it comes back under its address.
	s, err := options{dir: dir}.readState()
	if err != nil {
		t.Fatal(err)
	}
	before := pidOf(t, s.Health)
	if err := syscall.Kill(before, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	controlplane.Eventually(t, func() error {
		if err := isReady(t.Context(), http.DefaultClient, s.Health); err != nil {
			return err
		}
		if pidOf(t, s.Health) == before {
			return errors.New("the old one still answers")
		}
		return nil
	})

	want("down", 0, "✔ down")
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is still there: %v", dir, err)
	}
	if left := processesIn(t, dir); len(left) != 0 {
		t.Errorf("still running: %q", left)
	}
	want("down", 0, "nothing is up")
}

func TestKilledSupervisorTakesAllAlong(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "local")
	t.Cleanup(func() { local(t, dir, "down") })
	if _, code := local(t, dir, "up"); code != 0 {
		t.Fatal("up failed")
	}
	if running := processesIn(t, dir); len(running) != 6 {
		t.Errorf("running: %q, want six processes", running)
	}
	pid, err := options{dir: dir}.pid()
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if _, code := local(t, dir, "status"); code != 1 {
		t.Errorf("status: exit code %d, want 1", code)
	}
	if left := processesIn(t, dir); len(left) != 0 {
		t.Errorf("status says that nothing is up, but: %q", left)
	}
	if _, code := local(t, dir, "up"); code != 0 {
		t.Errorf("up after a crash: exit code %d, want 0", code)
	}
	if _, code := local(t, dir, "down"); code != 0 {
		t.Errorf("down: exit code %d, want 0", code)
	}
}

func TestUpSaysWhatIsMissing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "local")
	out, code := local(t, dir, "up", "-controller", "/does/not/exist")
	if code != 1 || !strings.Contains(out, "hint: run `make build` first") {
		t.Errorf("without a controller: exit code %d", code)
	}
	t.Setenv("KUBEBUILDER_ASSETS", t.TempDir())
	out, code = local(t, dir, "up")
	if code != 1 || !strings.Contains(out, "run `make kube` first") {
		t.Errorf("without binaries: exit code %d", code)
	}
	if out, code = local(t, dir, "sideways"); code != 1 || !strings.Contains(out, "no verb") {
		t.Errorf("unknown verb: exit code %d", code)
	}
}

// pidOf asks the controller that we play for its process ID.
func pidOf(t *testing.T, url string) (pid int) {
	t.Helper()
	resp, err := http.Get(url + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := fmt.Fscan(resp.Body, &pid); err != nil {
		t.Fatal(err)
	}
	return pid
}

// processesIn lists the command lines of the processes whose working directory is below dir.
func processesIn(t *testing.T, dir string) []string {
	t.Helper()
	links, err := filepath.Glob("/proc/[0-9]*/cwd")
	if err != nil || len(links) == 0 {
		t.Skip("no /proc to look at")
	}
	var found []string
	for _, link := range links {
		cwd, err := os.Readlink(link)
		if err != nil || !strings.HasPrefix(cwd, dir+"/") {
			continue // gone while we look, or not ours
		}
		cmdline, err := os.ReadFile(filepath.Join(filepath.Dir(link), "cmdline"))
		if err == nil && len(cmdline) > 0 { // a zombie has none
			found = append(found, strings.ReplaceAll(string(cmdline), "\x00", " "))
		}
	}
	return found
}
