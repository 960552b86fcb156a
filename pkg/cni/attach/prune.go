package attach

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Prune removes the files of one network's attachments that are older than a time, but those that valid reports. Files
// that cannot be read stay: nobody knows whose they are, and the directory does not outlive a boot.
func (d Dir) Prune(cniNetwork string, before time.Time, valid func(id, ifName string) bool) error {
	files, err := os.ReadDir(string(d))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var failed error
	for _, file := range files {
		info, err := file.Info()
		if err != nil || !info.Mode().IsRegular() || !strings.HasSuffix(file.Name(), suffix) {
			continue
		}
		if !info.ModTime().Before(before) {
			continue
		}
		path := filepath.Join(string(d), file.Name())
		a, err := read(path)
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
