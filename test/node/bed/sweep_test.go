//go:build linux

package bed

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/bcsnet/bcsnet/test/controlplane"
)

// TestNothingIsLeft ends a bed in several ways, each of which leaves nothing, at the latest after the next sweep. A bed
// that lives is left alone.
func TestNothingIsLeft(t *testing.T) {
	shared.For(t)
	for name, end := range map[string]func(*os.Process) error{
		"killed":  (*os.Process).Kill,
		"stopped": func(p *os.Process) error { return p.Signal(syscall.SIGTERM) }, // without a clean-up of its own
	} {
		t.Run(name, func(t *testing.T) {
			cmd, err := Command()
			if err != nil {
				t.Fatal(err)
			}
			cmd.Env = append(cmd.Env, holdEnv+"=1", "BED_TEST_MARK="+t.Name())
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			for _, f := range cmd.ExtraFiles {
				_ = f.Close() // it has its own
			}
			line, err := bufio.NewReader(out).ReadString('\n')
			bed := mark{name: strings.TrimSpace(line)}
			if err != nil || !strings.HasPrefix(bed.name, prefix) {
				t.Fatalf("it printed %q, %v", line, err)
			}
			if err := sweep(); err != nil {
				t.Fatal(err)
			}
			if len(cgroupsLike(bed.name+"-n1")) == 0 || len(processes(t, t.Name())) != 2 {
				t.Errorf("a bed that lives was swept: %q, %q", cgroupsLike(bed.name+"*"), processes(t, t.Name()))
			}
			if err := end(cmd.Process); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait()
			if left := processes(t, t.Name()); len(left) > 0 {
				t.Errorf("still running: %q", left)
			}
			controlplane.Eventually(t, sweep)
			if left := append(cgroupsLike(bed.name+"*"), globbed(bed.directory()+"*")...); len(left) > 0 {
				t.Errorf("left behind: %q", left)
			}
		})
	}
}

// processes returns the command lines of the processes that inherited a mark.
func processes(t *testing.T, mark string) (found []string) {
	t.Helper()
	for _, file := range globbed("/proc/[0-9]*/environ") {
		environ, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(environ), "BED_TEST_MARK="+mark+"\x00") {
			continue // gone, or not ours
		}
		cmdline, err := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
		if err == nil && len(cmdline) > 0 {
			found = append(found, string(cmdline))
		}
	}
	return found
}
