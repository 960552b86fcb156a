//go:build linux

package bed

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Plugins returns the process IDs of a plugin's running instances on the node that are about a pod, by which this
// process can signal them.
func (n *Node) Plugins(program, pod string) []int {
	return n.processes(program, func(dir string) bool {
		environ, err := os.ReadFile(filepath.Join(dir, "environ"))
		return err == nil && about(environ, pod)
	})
}

// about reports whether an environment is that of a plugin which was called for a pod. The order of its arguments is
// random.
func about(environ []byte, pod string) bool {
	for variable := range strings.SplitSeq(string(environ), "\x00") {
		if args, ok := strings.CutPrefix(variable, "CNI_ARGS="); ok {
			return slices.Contains(strings.Split(args, ";"), "K8S_POD_NAME="+pod)
		}
	}
	return false
}

// Sandboxes returns the process IDs of the sandboxes of pods on the node: with such a process the pod's network ends.
func (n *Node) Sandboxes() []int {
	return n.processes("podtool", func(dir string) bool {
		command, err := os.ReadFile(filepath.Join(dir, "cmdline"))
		return err == nil && string(command) == "/podtool\x00pause\x00"
	})
}

// processes returns the process IDs of a program, which is named as its file is, on the node, containers included,
// where what /proc has of them is accepted.
func (n *Node) processes(program string, accept func(dir string) bool) (pids []int) {
	if n.life == nil {
		return nil
	}
	for _, link := range globbed("/proc/[0-9]*/exe") {
		file, err := os.Readlink(link)
		dir := filepath.Dir(link)
		if err != nil || filepath.Base(file) != program || !n.owns(dir) || !accept(dir) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(dir)); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// owns reports whether a process, by its directory in /proc, is below process 1 of the node.
func (n *Node) owns(dir string) bool {
	home := strconv.Itoa(n.life.process1.Pid)
	for pid := filepath.Base(dir); pid != "0" && pid != "1"; {
		if pid == home {
			return true
		}
		stat, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
		_, after, ok := strings.Cut(string(stat), ") ")
		fields := strings.Fields(after)
		if err != nil || !ok || len(fields) < 2 {
			return false // gone
		}
		pid = fields[1]
	}
	return false
}
