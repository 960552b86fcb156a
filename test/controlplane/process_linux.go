package controlplane

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// childAttributes makes the kernel kill the child when this process dies, even by SIGKILL. It also keeps the terminal's
// Ctrl-C from the child, because we stop components in order.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}

// standsStill reports whether no thread of a process runs.
func standsStill(pid int) bool {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	for _, stat := range threads {
		text, err := os.ReadFile(stat)
		if err != nil {
			continue // it has ended
		}
		_, after, _ := bytes.Cut(text, []byte(") ")) // the name of the thread is in parentheses
		if !bytes.ContainsAny(after[:min(1, len(after))], "TZX") {
			return false
		}
	}
	return true
}
