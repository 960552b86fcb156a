//go:build linux

package bed

import (
	"crypto/rand"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
)

// prefix is how everything of a bed begins that has a name on the machine.
const prefix = "bcsnet-bed-"

// mark names one bed: its directory, and its cgroups. It is held for as long as the bed lives, by a socket that the kernel
// closes with the last process that has it.
type mark struct {
	name string
	held *net.UnixListener
}

// newMark returns a mark that nobody has. It must be called in the machine's own network namespace.
func newMark() (mark, error) {
	m := mark{name: prefix + strings.ToLower(rand.Text()[:8])}
	var err error
	m.held, err = hold(m.name)
	return m, err
}

// hold takes a name, or fails when somebody has it.
func hold(name string) (*net.UnixListener, error) {
	return net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: "@" + name})
}

// sweep removes the cgroups and directories of beds that are gone. Those that live are left alone, as is what cannot be
// removed: the next sweep tries again.
func sweep() error {
	var errs []error
	seen := map[string]bool{}
	for _, path := range append(cgroupsLike(prefix+"*"), globbed(filepath.Join(os.TempDir(), prefix+"*"))...) {
		// A cgroup has the name of its node after the bed's.
		name := filepath.Base(path)[:min(len(filepath.Base(path)), len(prefix)+8)]
		if seen[name] {
			continue
		}
		seen[name] = true
		socket, err := hold(name)
		if err != nil {
			continue
		}
		errs = append(errs, removeCgroups(name+"*"), removeEmpty(filepath.Join(os.TempDir(), name)), socket.Close())
	}
	return errors.Join(errs...)
}

// removeEmpty removes a directory, which has had a file system of the bed mounted on it, and so is empty itself.
func removeEmpty(dir string) error {
	if err := os.Remove(dir); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

func globbed(pattern string) []string {
	found, _ := filepath.Glob(pattern) // the patterns are ours
	return found
}
