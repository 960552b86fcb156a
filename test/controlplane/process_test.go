package controlplane_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/bcsnet/bcsnet/test/controlplane"
)

// processesUnder lists the command lines of the processes whose working directory is dir.
func processesUnder(t *testing.T, dir string) []string {
	t.Helper()
	links, err := filepath.Glob("/proc/[0-9]*/cwd")
	if err != nil || len(links) == 0 {
		t.Skip("no /proc to look at")
	}
	var found []string
	for _, link := range links {
		// Processes may go while we look, and a directory removed under one reads "… (deleted)".
		cwd, err := os.Readlink(link)
		if err != nil || strings.TrimSuffix(cwd, " (deleted)") != dir {
			continue
		}
		cmdline, err := os.ReadFile(filepath.Join(filepath.Dir(link), "cmdline"))
		if err == nil && len(cmdline) > 0 { // a zombie has none
			found = append(found, strings.ReplaceAll(string(cmdline), "\x00", " "))
		}
	}
	return found
}

// A control plane must not outlive whoever started it, not even when that one had no time to stop it.
func TestKilledOwnerTakesItsChildrenAlong(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux ties a child's life to its parent's")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	owner := exec.Command(self)
	owner.Env = append(os.Environ(), roleEnv+"=owner", "TMPDIR="+t.TempDir())
	owner.Stderr = t.Output()
	stdout, err := owner.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := owner.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal(err, owner.Wait())
	}
	dir := strings.TrimSpace(line)
	if running := processesUnder(t, dir); len(running) != 2 {
		t.Errorf("running: %q, want etcd and kube-apiserver", running)
	}
	if err := owner.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = owner.Wait() // "signal: killed"
	controlplane.Eventually(t, func() error {
		if running := processesUnder(t, dir); len(running) != 0 {
			return fmt.Errorf("still running: %q", running)
		}
		return nil
	})
}
