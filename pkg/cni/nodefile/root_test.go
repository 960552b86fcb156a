package nodefile

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestRoots has a file of root's, and each way in which somebody else can have chosen what is read.
func TestRoots(t *testing.T) {
	const somebody = 4711
	for name, c := range map[string]struct {
		change func(parent, dir, file string) error
		ok     bool
	}{
		"as the installer writes it": {func(_, _, _ string) error { return nil }, true},
		"a group of root's writes": {func(_, dir, file string) error {
			return errors.Join(os.Chown(file, 0, 0), os.Chmod(file, 0o660), os.Chown(dir, 0, 0), os.Chmod(dir, 0o770))
		}, true},
		"a link of root's above": {func(parent, _, _ string) error {
			return errors.Join(os.Rename(parent, parent+"-real"), os.Symlink(parent+"-real", parent))
		}, true},
		"the file is a link": {func(_, dir, file string) error {
			return errors.Join(os.Rename(file, dir+"/other"), os.Symlink("other", file))
		}, false},
		"the directory is a link": {func(_, dir, _ string) error {
			return errors.Join(os.Rename(dir, dir+"-real"), os.Symlink(dir+"-real", dir))
		}, false},
		"the directory is somebody's":    {func(_, dir, _ string) error { return os.Chown(dir, somebody, 0) }, false},
		"the file is somebody's":         {func(_, _, file string) error { return os.Chown(file, somebody, 0) }, false},
		"one above is somebody's":        {func(parent, _, _ string) error { return os.Chown(parent, somebody, 0) }, false},
		"everybody writes the file":      {func(_, _, file string) error { return os.Chmod(file, 0o602) }, false},
		"everybody writes the directory": {func(_, dir, _ string) error { return os.Chmod(dir, 0o777) }, false},
		"everybody writes it, sticky":    {func(_, dir, _ string) error { return os.Chmod(dir, 0o777|os.ModeSticky) }, false},
		"everybody writes one above":     {func(parent, _, _ string) error { return os.Chmod(parent, 0o777) }, false},
		"a group writes the file": {func(_, _, file string) error {
			return errors.Join(os.Chown(file, 0, somebody), os.Chmod(file, 0o660))
		}, false},
		"a directory in its place": {func(_, _, file string) error {
			return errors.Join(os.Remove(file), os.Mkdir(file, 0o700))
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if os.Geteuid() != 0 {
				t.Skip("skipped: it gives files to other users, so run it as root")
			}
			parent := filepath.Join(t.TempDir(), "net.d")
			dir := filepath.Join(parent, "bcsnet.d")
			file := filepath.Join(dir, "token")
			if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(file, []byte("secret"), 0o600), c.change(parent, dir, file)); err != nil {
				t.Fatal(err)
			}
			var text []byte
			d, err := OpenRoots(dir)
			if err == nil {
				text, err = d.Read("token", 100)
				_ = d.Close()
			}
			if c.ok && (err != nil || string(text) != "secret") || !c.ok && (err == nil || text != nil) {
				t.Errorf("%q, %v", text, err)
			}
		})
	}
}
