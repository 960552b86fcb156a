package app

import (
	"bufio"
	"io"
	"os"
	"path/filepath"

	"github.com/bcsnet/bcsnet/pkg/cli/terminal"
)

// WriteFile writes what write writes to a file, or to standard output if the name is -. A file is there whole or as it
// was before. Only its owner may read it.
func WriteFile(s *App, name string, write func(io.Writer) error) (err error) {
	if name == "-" {
		if terminal.Is(terminal.Raw(s.Out)) {
			return write(s.Out)
		}
		return write(terminal.Raw(s.Out)) // programs get it as it is
	}
	f, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*.tmp")
	if err != nil {
		return &Failure{Message: err.Error(), Cause: err}
	}
	defer func() {
		if err != nil {
			_ = f.Close()
			_ = os.Remove(f.Name())
		}
	}()
	b := bufio.NewWriter(f)
	if err := write(b); err != nil {
		return err
	}
	for _, step := range []func() error{
		b.Flush, f.Sync, f.Close, func() error { return os.Rename(f.Name(), name) },
	} {
		if err := step(); err != nil {
			return &Failure{Message: err.Error(), Cause: err}
		}
	}
	return nil
}
