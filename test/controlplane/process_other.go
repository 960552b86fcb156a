//go:build !linux

package controlplane

import "syscall"

// childAttributes keeps the terminal's Ctrl-C from the child: we stop things in order. Only Linux
// can tie a child's life to ours; elsewhere a kill -9 leaves it behind.
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// standsStill cannot be known here.
func standsStill(int) bool { return true }
