package attach

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/bcsnet/bcsnet/pkg/cni/nodefile"
)

// maxSize bounds a file, in octets: 64 addresses and the longest allowed names take less than half.
const maxSize = 16 << 10

// Dir is the directory with a file for each container and interface. It is empty after a boot, because the containers
// are gone then.
type Dir struct{ nodefile.Store[*Attachment] }

// At returns the Dir at a path.
func At(dir string) Dir { return Dir{nodefile.Store[*Attachment]{Dir: dir, MaxSize: maxSize}} }

// In returns the Dir in a node's directory for files that do not survive a reboot.
func In(runDir string) Dir { return At(filepath.Join(runDir, "attach")) }

// Beside returns the path of another file in the node's directory for files that do not survive a reboot.
func (d Dir) Beside(name string) string { return filepath.Join(filepath.Dir(d.Dir), name) }

// Write writes the file of an attachment and replaces an earlier one. A concurrent reader gets the old or the new
// content.
func (d Dir) Write(a *Attachment) error {
	content, err := d.Encode(a)
	if err != nil {
		return fmt.Errorf("write an attachment: %w", err)
	}
	return nodefile.Replace(d.Path(a.ContainerID, a.IfName), content)
}

// Find returns the first attachment for which wanted returns true; nil if there is none. Files that cannot be read are
// skipped.
func (d Dir) Find(wanted func(*Attachment) bool) (found *Attachment, err error) {
	err = d.Each(func(_ string, a *Attachment, err error) bool {
		if err == nil && wanted(a) {
			found = a
		}
		return found == nil
	})
	return found, err
}

// LenOf counts the attachments that may belong to a network. A file that names no network, or that cannot be read,
// counts.
func (d Dir) LenOf(cniNetwork string) (n int, err error) {
	err = d.Each(func(_ string, a *Attachment, err error) bool {
		switch {
		case errors.Is(err, fs.ErrNotExist): // it was removed meanwhile
		case err == nil && a.CNINetwork != "" && a.CNINetwork != cniNetwork:
		default:
			n++
		}
		return true
	})
	return n, err
}

// Prune removes the files of one network's attachments that are older than a time, unless valid returns true. Files
// that cannot be read stay: their attachment is not known, and the next boot empties the directory.
func (d Dir) Prune(cniNetwork string, before time.Time, valid func(id, ifName string) bool) error {
	var failed error
	err := d.Each(func(path string, a *Attachment, err error) bool {
		info, gone := os.Lstat(path)
		if err != nil || gone != nil || !info.Mode().IsRegular() || !info.ModTime().Before(before) ||
			a.CNINetwork != cniNetwork || valid(a.ContainerID, a.IfName) {
			return true
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			failed = errors.Join(failed, err)
		}
		return true
	})
	if err := errors.Join(err, failed); err != nil {
		return fmt.Errorf("remove old attachments: %w", err)
	}
	return nil
}
