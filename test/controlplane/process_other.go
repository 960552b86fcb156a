//go:build !linux

package controlplane

import "syscall"

// childAttributes keeps the terminal's Ctrl-C from the child, because we stop components in order. Only Linux can tie
// the child's life to ours; elsewhere the child survives a kill -9.
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// standsStill cannot be known here.
func standsStill(int) bool { return true }
