package attach

import (
	"errors"
	"io/fs"
	"path/filepath"
)

// LenOf counts the attachments that may be of a network: a file that names no network, or cannot be read, counts.
func (d Dir) LenOf(cniNetwork string) (n int, err error) {
	names, err := d.files().Names()
	for _, name := range names {
		a, err := d.files().Load(filepath.Join(string(d), name))
		switch {
		case errors.Is(err, fs.ErrNotExist): // it has gone meanwhile
		case err == nil && a.CNINetwork != "" && a.CNINetwork != cniNetwork:
		default:
			n++
		}
	}
	return n, err
}
