package attach

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// LenOf counts the attachments that may be of a network: a file that names no network, or cannot be read, counts.
func (d Dir) LenOf(cniNetwork string) (n int, err error) {
	files, err := os.ReadDir(string(d))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	for _, file := range files {
		if !strings.HasSuffix(file.Name(), suffix) {
			continue
		}
		a, err := read(filepath.Join(string(d), file.Name()))
		switch {
		case errors.Is(err, fs.ErrNotExist): // it has gone meanwhile
		case err == nil && a.CNINetwork != "" && a.CNINetwork != cniNetwork:
		default:
			n++
		}
	}
	return n, err
}
