package node

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// TestWrite has each state in which a file can be found, and the file as it is to be after it.
func TestWrite(t *testing.T) {
	for name, c := range map[string]struct {
		before func(t *testing.T, dir string)
		wrote  bool
	}{
		"nothing there": {before: func(*testing.T, string) {}, wrote: true},
		"the same": {before: func(t *testing.T, dir string) {
			t.Helper()
			put(t, filepath.Join(dir, "f"), "new")
		}},
		"another content of this length": {before: func(t *testing.T, dir string) {
			t.Helper()
			put(t, filepath.Join(dir, "f"), "old")
		}, wrote: true},
		"another mode": {before: func(t *testing.T, dir string) {
			t.Helper()
			put(t, filepath.Join(dir, "f"), "new")
			if err := os.Chmod(filepath.Join(dir, "f"), 0o644); err != nil {
				t.Fatal(err)
			}
		}, wrote: true},
		"a link to the same": {before: func(t *testing.T, dir string) {
			t.Helper()
			put(t, filepath.Join(dir, "target"), "new")
			if err := os.Symlink("target", filepath.Join(dir, "f")); err != nil {
				t.Fatal(err)
			}
		}, wrote: true},
		"what somebody left who was killed": {before: func(t *testing.T, dir string) {
			t.Helper()
			put(t, filepath.Join(dir, ".f.new"), "half of")
		}, wrote: true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			c.before(t, dir)
			f := file{dir, "f", []byte("new"), 0o600}
			if wrote, err := f.write(); wrote != c.wrote || err != nil {
				t.Errorf("wrote %t, %v", wrote, err)
			}
			if done, err := f.inPlace(); !done || err != nil {
				t.Errorf("it is not in place: %v", err)
			}
			got := filesOf(t, dir)
			delete(got, "target")
			if diff := cmp.Diff(map[string]string{"f": "new"}, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestFullDisk has a disk with room for the earlier file alone: that stays, whole, and nothing is left beside it.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	tmpfs(t, dir, "64k")
	small := file{dir, "f", []byte("small"), 0o600}
	if _, err := small.write(); err != nil {
		t.Fatal(err)
	}
	large := file{dir, "f", []byte(strings.Repeat("x", 100<<10)), 0o600}
	if _, err := large.write(); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("%v, want %v", err, unix.ENOSPC)
	}
	if diff := cmp.Diff(map[string]string{"f": "small"}, filesOf(t, dir)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestReadOnlyDisk has a disk that takes nothing. What is in place needs no write.
func TestReadOnlyDisk(t *testing.T) {
	dir := t.TempDir()
	tmpfs(t, dir, "64k")
	f := file{dir, "f", []byte("it"), 0o600}
	if _, err := f.write(); err != nil {
		t.Fatal(err)
	}
	readOnly(t, dir)
	if wrote, err := f.write(); wrote || err != nil {
		t.Errorf("what is in place: wrote %t, %v", wrote, err)
	}
	f.content = []byte("another")
	if _, err := f.write(); !errors.Is(err, unix.EROFS) {
		t.Errorf("%v, want %v", err, unix.EROFS)
	}
}

// FuzzTokenLife: whatever a token is, its life is none, or one that a token can have.
func FuzzTokenLife(f *testing.F) {
	f.Add("a.eyJpYXQiOjEsImV4cCI6M30.b")
	f.Add("a.e30.b")
	f.Add("..")
	f.Fuzz(func(t *testing.T, text string) {
		if life := tokenLife(text); life < 0 || life > (1<<32)*time.Second {
			t.Errorf("%q lasts %s", text, life)
		}
	})
}
