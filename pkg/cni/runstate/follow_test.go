package runstate

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// log writes lines whose request IDs are numbers.
func log(t *testing.T, d Dir, from, to int) (ids []string) {
	t.Helper()
	for i := from; i < to; i++ {
		id := fmt.Sprint(i)
		if err := d.Log(Call{Command: "ADD", Outcome: OK, RequestID: id}); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	return ids
}

// next returns the request IDs of the lines since the last one.
func next(t *testing.T, f *Follower, unreadable int) (ids []string) {
	t.Helper()
	n, err := f.Next(func(c Call) { ids = append(ids, c.RequestID) })
	if err != nil || n != unreadable {
		t.Errorf("%d lines cannot be read, %v; want %d", n, err, unreadable)
	}
	return ids
}

func same(t *testing.T, what string, want, got []string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// rotate does what a call does that finds the file full.
func rotate(t *testing.T, d Dir) {
	t.Helper()
	if err := os.Rename(filepath.Join(string(d), callsFile), filepath.Join(string(d), olderFile)); err != nil {
		t.Fatal(err)
	}
}

// TestFollow reads each line once: as they come, over rotations, and by the next Follower.
func TestFollow(t *testing.T) {
	d := Dir(filepath.Join(t.TempDir(), "run"))
	f := d.Follow()
	same(t, "nothing", nil, next(t, f, 0))
	same(t, "the first", log(t, d, 0, 2), next(t, f, 0))
	same(t, "none since", nil, next(t, f, 0))
	more := log(t, d, 2, 4)
	rotate(t, d)
	same(t, "a rotation", append(more, log(t, d, 4, 6)...), next(t, f, 0))
	late, err := os.OpenFile(filepath.Join(string(d), olderFile), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := late.WriteString(`{"requestID":"late"}` + "\n"); err != nil {
		t.Fatal(err)
	}
	same(t, "a line of a call that had the earlier file open", []string{"late"}, next(t, f, 0))
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	more = log(t, d, 6, 7)
	f = d.Follow()
	same(t, "by the next one", more, next(t, f, 0))
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	more = log(t, d, 7, 8)
	rotate(t, d)
	f = d.Follow()
	same(t, "by the next one, after a rotation", append(more, log(t, d, 8, 9)...), next(t, f, 0))
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestFollowFromTheOldest has nobody who read before, or one whose place is gone or damaged: both files are read.
func TestFollowFromTheOldest(t *testing.T) {
	for name, place := range map[string]string{"none": "", "another file's": `{"inode":1,"offset":7}`, "damaged": `{"ino`} {
		t.Run(name, func(t *testing.T) {
			d := Dir(t.TempDir())
			all := log(t, d, 0, 2)
			rotate(t, d)
			all = append(all, log(t, d, 2, 3)...)
			if place != "" {
				if err := os.WriteFile(filepath.Join(string(d), positionFile), []byte(place), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			f := d.Follow()
			defer f.Close()
			same(t, "all", all, next(t, f, 0))
		})
	}
}

// TestFollowDamaged has lines that are none, one that is being written, and a file that somebody emptied.
func TestFollowDamaged(t *testing.T) {
	d := Dir(t.TempDir())
	path := filepath.Join(string(d), callsFile)
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("no JSON\n[]\n" + `{"requestID":"a"}` + "\n" + `{"requestID":`)
	f := d.Follow()
	defer f.Close()
	same(t, "the whole one", []string{"a"}, next(t, f, 2))
	write("no JSON\n[]\n" + `{"requestID":"a"}` + "\n" + `{"requestID":"b"}` + "\n")
	same(t, "when it is whole", []string{"b"}, next(t, f, 0))
	write(`{"requestID":"c"}` + "\n")
	same(t, "after it was emptied", []string{"c"}, next(t, f, 0))
}

// TestFollowRotates has the lines of 1,000 calls, with a size at which the real rotation comes.
func TestFollowRotates(t *testing.T) {
	d := Dir(t.TempDir())
	f := d.Follow()
	defer f.Close()
	var want, got []string
	text := strings.Repeat("a pod ", 480)
	for i := range 1000 {
		id := fmt.Sprint(i)
		if err := d.Log(Call{RequestID: id, Pod: text}); err != nil {
			t.Fatal(err)
		}
		want = append(want, id)
		if i%100 == 99 {
			got = append(got, next(t, f, 0)...)
		}
	}
	same(t, "all", want, got)
	if _, err := os.Stat(filepath.Join(string(d), olderFile)); err != nil {
		t.Error("there was no rotation")
	}
}

// FuzzCalls: whatever the log and the position in it are, each whole line is handed on or counted, once.
func FuzzCalls(f *testing.F) {
	f.Add("{}\n{\"command\":\"ADD\"}\nx\n{", int64(0))
	f.Add("\n\n", int64(-7))
	f.Add("{}\n", int64(1<<62))
	f.Fuzz(func(t *testing.T, text string, offset int64) {
		d := Dir(t.TempDir())
		path := filepath.Join(string(d), callsFile)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		at, err := open(path)
		if err != nil {
			t.Fatal(err)
		}
		position := fmt.Sprintf(`{"inode":%d,"offset":%d}`, at.inode, offset)
		if err := at.close(); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(string(d), positionFile), []byte(position), 0o600); err != nil {
			t.Fatal(err)
		}
		if offset < 0 || offset > int64(len(text)) {
			offset = 0
		}
		follower := d.Follow()
		defer follower.Close()
		read := 0
		unreadable, err := follower.Next(func(Call) { read++ })
		if want := strings.Count(text[offset:], "\n"); err != nil || read+unreadable != want {
			t.Errorf("%d lines and %d that cannot be read, of %d: %v", read, unreadable, want, err)
		}
		if unreadable, err = follower.Next(func(Call) { read++ }); err != nil || unreadable != 0 {
			t.Errorf("again: %d, %v", unreadable, err)
		}
	})
}
