package build

import (
	"archive/tar"
	"io"
	"os"
	"time"
)

// AddFile writes a file into an archive, of root and of one time.
func AddFile(w *tar.Writer, from, to string, mode int64, at time.Time) error {
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if err := w.WriteHeader(&tar.Header{Name: to, Mode: mode, Size: info.Size(), ModTime: at}); err != nil {
		return err
	}
	_, err = io.Copy(w, f)
	return err
}
