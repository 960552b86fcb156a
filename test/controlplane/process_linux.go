package controlplane

import "syscall"

// childAttributes makes the kernel kill the child when we die, even by SIGKILL, and keeps
// the terminal's Ctrl-C from it: we stop things in order.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
