//go:build linux

package bed

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// hidden are the directories of the machine that a node has for itself.
var hidden = []string{"/run", "/var/lib", "/var/log", "/etc", "/opt"}

// mounting is one mount.
type mounting struct {
	what, on, kind string
	flags          uintptr
	data           string
}

// do makes the mount, and the directory that it is on.
func (m mounting) do() error {
	if _, err := os.Stat(m.on); errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(m.on, 0o755); err != nil {
			return err
		}
	}
	if err := unix.Mount(m.what, m.on, m.kind, m.flags, m.data); err != nil {
		return fmt.Errorf("mount %s %s on %s: %w", m.kind, m.what, m.on, err)
	}
	return nil
}

// mountAll gives a node its own places in the file system, in the mount namespace of this process. /run is empty after
// each start, as after that of a machine; the others stay.
func mountAll(dir string) error {
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"lib", "log", "opt/cni/bin", "etc", "etc.work", "cni/net.d"} {
		if err := os.MkdirAll(at(name), 0o755); err != nil {
			return err
		}
	}
	for _, m := range []mounting{
		{what: "none", on: "/", flags: unix.MS_REC | unix.MS_PRIVATE},
		{what: "proc", on: "/proc", kind: "proc"},
		{what: "tmpfs", on: "/run", kind: "tmpfs", data: "mode=0755"},
		{what: at("lib"), on: "/var/lib", flags: unix.MS_BIND},
		{what: at("log"), on: "/var/log", flags: unix.MS_BIND},
		{what: at("opt"), on: "/opt", flags: unix.MS_BIND},
		{what: "overlay", on: "/etc", kind: "overlay",
			data: "lowerdir=/etc,upperdir=" + at("etc") + ",workdir=" + at("etc.work")},
		{what: at("cni"), on: "/etc/cni", flags: unix.MS_BIND},
	} {
		if err := m.do(); err != nil {
			return err
		}
	}
	if err := pretend(at("sysctl")); err != nil {
		return err
	}
	// As systemd has it: kubelet and runtime want mounts that containers see.
	return mounting{what: "none", on: "/", flags: unix.MS_REC | unix.MS_SHARED}.do()
}

// pretend shows the kubelet the values that it wants of settings that are the whole machine's: it reads that they are
// so, and sets nothing.
func pretend(dir string) error {
	for name, value := range map[string]string{
		"vm/overcommit_memory": "1", "vm/panic_on_oom": "0", "kernel/panic": "10", "kernel/panic_on_oops": "1",
	} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, []byte(value+"\n"), 0o644); err != nil {
			return err
		}
		if err := (mounting{what: file, on: filepath.Join("/proc/sys", name), flags: unix.MS_BIND}).do(); err != nil {
			return err
		}
	}
	return nil
}
