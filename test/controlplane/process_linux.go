package controlplane

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// childAttributes makes the kernel kill the child when we die, even by SIGKILL, and keeps
// the terminal's Ctrl-C from it: we stop things in order.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}

// standsStill reports whether no thread of a process goes on. A thread that has ended does not go on.
func standsStill(pid int) bool {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	for _, stat := range threads {
		text, err := os.ReadFile(stat)
		if err != nil {
			continue // it has ended
		}
		_, after, _ := bytes.Cut(text, []byte(") ")) // the name of the thread is in brackets
		if !bytes.ContainsAny(after[:min(1, len(after))], "TZX") {
			return false
		}
	}
	return true
}
