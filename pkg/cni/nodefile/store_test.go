package nodefile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// entry is what the tests keep.
type entry struct {
	ID     string `json:"id"`
	IfName string `json:"ifName"`
	Value  string `json:"value"`
}

func (e entry) Attachment() (id, ifName string) { return e.ID, e.IfName }
func (e entry) Validate() error                 { return ValidNames(e.ID, e.IfName) }

func put(t *testing.T, s Store[entry], path string, e entry) {
	t.Helper()
	content, err := s.Encode(e)
	if err := errors.Join(err, Replace(path, content)); err != nil {
		t.Fatal(err)
	}
}

// TestNamesAreOfOneAttachment has attachments whose names look alike when they are joined by a hyphen.
func TestNamesAreOfOneAttachment(t *testing.T) {
	s := Store[entry]{Dir: t.TempDir(), MaxSize: 1 << 10}
	all := []entry{{"sb-1", "eth0", "a"}, {"sb", "1-eth0", "b"}, {"sb-1-eth0", "x", "c"}, {"sb.1", "-", "d"}, {"sb.1-", ".x", "e"}}
	for _, e := range all {
		put(t, s, s.Path(e.ID, e.IfName), e)
	}
	for i, e := range all {
		if got, err := s.Read(e.ID, e.IfName); err != nil || got != e {
			t.Errorf("%+v: %+v, %v", e, got, err)
		}
		if err := s.Remove(e.ID, e.IfName); err != nil {
			t.Error(err)
		}
		if names, err := s.Names(); err != nil || len(names) != len(all)-1-i {
			t.Errorf("after %+v: %v, %v", e, names, err)
		}
	}
}

// TestFormerNames has what an earlier release wrote: it is its attachment's, and not that of another one with the same
// name.
func TestFormerNames(t *testing.T) {
	s := Store[entry]{Dir: t.TempDir(), MaxSize: 1 << 10}
	former := filepath.Join(s.Dir, "sb-1-eth0.json")
	old := entry{"sb-1", "eth0", "old"}
	put(t, s, former, old)
	if got, err := s.Read("sb-1", "eth0"); err != nil || got != old {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := s.Read("sb", "1-eth0"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("another one's: %v", err)
	}
	if err := s.Remove("sb", "1-eth0"); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(former); err != nil {
		t.Errorf("another one's DEL removed it: %v", err)
	}
	now := entry{"sb-1", "eth0", "now"}
	put(t, s, s.Path("sb-1", "eth0"), now)
	if got, err := s.Read("sb-1", "eth0"); err != nil || got != now {
		t.Errorf("beside the former one: %+v, %v", got, err)
	}
	if err := s.Remove("sb-1", "eth0"); err != nil {
		t.Error(err)
	}
	if names, err := s.Names(); err != nil || len(names) != 0 {
		t.Errorf("%v, %v", names, err)
	}
	if err := os.WriteFile(former, []byte(`{"id":`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Read("sb-1", "eth0"); !errors.Is(err, ErrDamaged) {
		t.Errorf("damaged: %v", err)
	}
	if err := s.Remove("sb-1", "eth0"); err != nil {
		t.Error(err)
	}
	if names, err := s.Names(); err != nil || len(names) != 0 {
		t.Errorf("%v, %v", names, err)
	}
}
