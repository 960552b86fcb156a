package attach

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Prune removes the files of one network's attachments that are older than a time, but those that valid reports. Files
// that cannot be read stay: nobody knows whose they are, and the directory does not outlive a boot.
func (d Dir) Prune(cniNetwork string, before time.Time, valid func(id, ifName string) bool) error {
	names, err := d.files().Names()
	var failed error
	for _, name := range names {
		path := filepath.Join(string(d), name)
		info, err := os.Lstat(path)
		if err != nil || !info.Mode().IsRegular() || !info.ModTime().Before(before) {
			continue
		}
		a, err := d.files().Load(path)
		if err != nil || a.CNINetwork != cniNetwork || valid(a.ContainerID, a.IfName) {
			continue
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			failed = errors.Join(failed, err)
		}
	}
	if err := errors.Join(err, failed); err != nil {
		return fmt.Errorf("remove old attachments: %w", err)
	}
	return nil
}
