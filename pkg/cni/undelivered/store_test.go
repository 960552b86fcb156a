package undelivered

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

var compare = cmp.Comparer(func(a, b netip.Addr) bool { return a == b })

func record(id string) Record {
	return Record{
		Cluster: "c1", Host: netip.MustParseAddr("10.0.0.11"), ContainerID: id, IfName: "eth0", Pod: "shop/web-0", PodUID: "u1",
		StartedAt: time.Date(2026, 1, 2, 15, 4, 5, 6, time.UTC),
	}
}

// deliveries collects what a test's deliver gets.
func deliveries(to *[]Record, err error) func(context.Context, Record) error {
	return func(_ context.Context, r Record) error {
		*to = append(*to, r)
		return err
	}
}

func TestPutAndDrain(t *testing.T) {
	s := In(t.TempDir())
	if all, err := s.Drain(t.Context(), "c1", Max, deliveries(new([]Record), nil)); len(all) != 0 || err != nil {
		t.Errorf("without a directory: %v, %v", all, err)
	}
	older := record("b")
	older.Pod = ""
	for _, r := range []Record{record("a"), older, record("b")} {
		if err := s.Put(r); err != nil {
			t.Fatal(err)
		}
	}
	if info, err := os.Stat(filepath.Join(s.Dir, "a:eth0.json")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	var got []Record
	all, err := s.Drain(t.Context(), "c1", 1, deliveries(&got, nil))
	if diff := cmp.Diff([]Record{record("a")}, got, compare); err != nil || diff != "" || len(all) != 1 {
		t.Errorf("one of two: %v (-want +got):\n%s", err, diff)
	}
	all, err = s.Drain(t.Context(), "c1", Max, deliveries(&got, nil))
	if diff := cmp.Diff([]Record{record("a"), record("b")}, got, compare); err != nil || diff != "" || len(all) != 1 {
		t.Errorf("the other: %v (-want +got):\n%s", err, diff)
	}
	if n, err := s.Len(); n != 0 || err != nil {
		t.Errorf("%d are left, %v", n, err)
	}
}

// TestDrainErrors has each way in which a delivery ends, and the record that is left, or not.
func TestDrainErrors(t *testing.T) {
	broken := errors.New("no replica")
	for name, c := range map[string]struct {
		deliver error
		cluster string
		ended   error
		gone    bool
		dropped string
	}{
		"no replica":          {deliver: broken, cluster: "c1", ended: broken},
		"later":               {deliver: fmt.Errorf("%w: wait", ErrLater), cluster: "c1"},
		"for good":            {deliver: fmt.Errorf("%w: no", ErrRefused), cluster: "c1", gone: true, dropped: "for good"},
		"another cluster":     {cluster: "c2", gone: true, dropped: "of cluster c1, and this is c2"},
		"no cluster is known": {},
	} {
		t.Run(name, func(t *testing.T) {
			s := In(t.TempDir())
			for _, id := range []string{"a", "b"} {
				if err := s.Put(record(id)); err != nil {
					t.Fatal(err)
				}
			}
			var asked []Record
			all, err := s.Drain(t.Context(), c.cluster, Max, deliveries(&asked, c.deliver))
			if !errors.Is(err, c.ended) || c.ended != nil && len(asked) != 1 {
				t.Errorf("%v after %d deliveries", err, len(asked))
			}
			if c.deliver == nil && len(asked) != 0 {
				t.Errorf("%d were delivered", len(asked))
			}
			for _, d := range all {
				if d.Err == nil || !strings.Contains(d.Err.Error(), c.dropped) {
					t.Errorf("%+v", d)
				}
			}
			want := 2
			if c.gone {
				want = 0
			}
			if n, err := s.Len(); n != want || err != nil || len(all) != 2-want {
				t.Errorf("%d are left, %v; %v", n, err, all)
			}
		})
	}
}

// TestDrainsAtOnce has several drains among DELs that keep records: each record is delivered, and by one of them at a
// time.
func TestDrainsAtOnce(t *testing.T) {
	const records = 40
	s := In(t.TempDir())
	var mu sync.Mutex
	under, delivered := map[string]bool{}, map[string]bool{}
	deliver := func(_ context.Context, r Record) error {
		mu.Lock()
		twice := under[r.ContainerID]
		under[r.ContainerID] = true
		mu.Unlock()
		if twice {
			t.Errorf("%s is delivered by two at once", r.ContainerID)
		}
		runtime.Gosched()
		mu.Lock()
		defer mu.Unlock()
		under[r.ContainerID], delivered[r.ContainerID] = false, true
		return nil
	}
	var puts, drains sync.WaitGroup
	done := make(chan struct{})
	for range 3 {
		drains.Go(func() {
			for over := false; !over; {
				select {
				case <-done:
					over = true
				default:
				}
				if _, err := s.Drain(t.Context(), "c1", Max, deliver); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for i := range records {
		puts.Go(func() {
			if err := s.Put(record(fmt.Sprint("c", i))); err != nil {
				t.Error(err)
			}
		})
	}
	puts.Wait()
	close(done)
	drains.Wait()
	if n, err := s.Len(); n != 0 || err != nil || len(delivered) != records {
		t.Errorf("%d of %d were delivered, and %d are left, %v", len(delivered), records, n, err)
	}
}

// TestUnreadable has an entry that cannot be read before a record that can be: that one is delivered all the same.
func TestUnreadable(t *testing.T) {
	s := In(t.TempDir())
	if err := s.Put(record("b")); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(s.Path("a", "eth0"), 0o700); err != nil {
		t.Fatal(err)
	}
	var got []Record
	all, err := s.Drain(t.Context(), "c1", Max, deliveries(&got, nil))
	if len(got) != 1 || len(all) != 1 || all[0].Err != nil {
		t.Errorf("delivered %v, %v", got, all)
	}
	if err == nil || !strings.Contains(err.Error(), s.Path("a", "eth0")) {
		t.Errorf("the error is %v", err)
	}
	if n, err := s.Len(); n != 1 || err != nil {
		t.Errorf("%d are left, %v", n, err)
	}
}

// TestUnknownCluster has a record of a node whose configuration named no cluster: whoever comes delivers it.
func TestUnknownCluster(t *testing.T) {
	s := In(t.TempDir())
	r := record("a")
	r.Cluster = ""
	if err := s.Put(r); err != nil {
		t.Fatal(err)
	}
	var got []Record
	if _, err := s.Drain(t.Context(), "c2", Max, deliveries(&got, nil)); err != nil || len(got) != 1 {
		t.Errorf("%v, %v", got, err)
	}
}

// TestDamaged has files that are no records: they go, with a word, and the others are delivered.
func TestDamaged(t *testing.T) {
	right := `{"cluster":"c1","host":"10.0.0.11","containerID":"x","ifName":"eth0","startedAt":"2026-01-02T15:04:05Z"}`
	for name, text := range map[string]string{
		"empty": "", "cut off": right[:40], "a list": "[]", "zeros": "\x00\x00", "two": right + right,
		"no ID": strings.Replace(right, `"x"`, `""`, 1), "an ID that is a path": strings.Replace(right, `"x"`, `"../x"`, 1),
		"no interface": strings.Replace(right, `"eth0"`, `""`, 1), "host": strings.Replace(right, "10.0.0.11", "node-1", 1),
		"startedAt": strings.Replace(right, "2026", "x", 1), "no startedAt": right[:70] + `"later":1}`,
		"too large": right + strings.Repeat(" ", maxSize),
	} {
		t.Run(name, func(t *testing.T) {
			s := In(t.TempDir())
			if err := s.Put(record("z")); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(s.Dir, "x:eth0.json"), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			var got []Record
			all, err := s.Drain(t.Context(), "c1", Max, deliveries(&got, nil))
			if err != nil || len(all) != 2 || len(got) != 1 || got[0].ContainerID != "z" {
				t.Fatalf("%v, %v, delivered %v", all, err, got)
			}
			if d := all[0]; d.File != "x:eth0.json" || d.Err == nil || !strings.Contains(d.Err.Error(), "damaged") {
				t.Errorf("%+v", d)
			}
		})
	}
}

func TestPutRefuses(t *testing.T) {
	for name, change := range map[string]func(*Record){
		"no ID":           func(r *Record) { r.ContainerID = "" },
		"a path":          func(r *Record) { r.ContainerID = "../x" },
		"too long":        func(r *Record) { r.ContainerID = strings.Repeat("a", 201) },
		"no interface":    func(r *Record) { r.IfName = "" },
		"a bad interface": func(r *Record) { r.IfName = "a/b" },
		"no time":         func(r *Record) { r.StartedAt = time.Time{} },
	} {
		t.Run(name, func(t *testing.T) {
			s := In(t.TempDir())
			r := record("a")
			change(&r)
			if err := s.Put(r); err == nil {
				t.Error("no error")
			}
			if _, err := os.Stat(s.Dir); err == nil {
				t.Error("something was written")
			}
		})
	}
}

// TestFull has as many records as may be: one more is refused, one that replaces another is not.
func TestFull(t *testing.T) {
	s := In(t.TempDir())
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for i := range Max {
		if err := os.WriteFile(filepath.Join(s.Dir, fmt.Sprintf("a%d:eth0.json", i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Put(record("one-more")); !errors.Is(err, ErrFull) {
		t.Errorf("%v", err)
	}
	if err := s.Put(record("a7")); err != nil {
		t.Errorf("a record that is there: %v", err)
	}
}

// TestLeftovers has a file that a process left which was killed: it is no record.
func TestLeftovers(t *testing.T) {
	s := In(t.TempDir())
	if err := s.Put(record("a")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.Dir, ".new-1"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	var got []Record
	if _, err := s.Drain(t.Context(), "c1", Max, deliveries(&got, nil)); err != nil || len(got) != 1 {
		t.Errorf("%v, %v", got, err)
	}
	if n, err := s.Len(); n != 0 || err != nil {
		t.Errorf("%d records, %v", n, err)
	}
}

// TestForget has an ADD take its own record away, and wait for whoever delivers it just then.
func TestForget(t *testing.T) {
	s := In(t.TempDir())
	if err := s.Forget(t.Context(), "a", "eth0"); err != nil {
		t.Errorf("no record: %v", err)
	}
	if err := s.Put(record("a")); err != nil {
		t.Fatal(err)
	}
	begun, end := make(chan struct{}), make(chan struct{})
	var delivered atomic.Bool
	drained := make(chan error, 1)
	go func() {
		_, err := s.Drain(context.Background(), "c1", Max, func(context.Context, Record) error {
			close(begun)
			<-end
			delivered.Store(true)
			return nil
		})
		drained <- err
	}()
	<-begun
	short, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer stop()
	if err := s.Forget(short, "a", "eth0"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("while it is delivered: %v", err)
	}
	forgotten := make(chan error, 1)
	go func() {
		err := s.Forget(context.Background(), "a", "eth0")
		if !delivered.Load() {
			err = errors.New("it did not wait")
		}
		forgotten <- err
	}()
	// Whoever drains at the same time leaves it to the first.
	if all, err := s.Drain(t.Context(), "c1", Max, deliveries(new([]Record), nil)); len(all) != 0 || err != nil {
		t.Errorf("a second one drained %v, %v", all, err)
	}
	close(end)
	if err := errors.Join(<-drained, <-forgotten); err != nil {
		t.Error(err)
	}
	if n, err := s.Len(); n != 0 || err != nil {
		t.Errorf("%d are left, %v", n, err)
	}
}

// TestReadOnly has a directory that takes nothing. Root writes everywhere, so it is a file system of its own.
func TestReadOnly(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("skipped: file systems are mounted by root alone")
	}
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"); err != nil {
		t.Skipf("skipped: no file system can be mounted here: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	s := In(dir)
	if err := s.Put(record("a")); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	if err := s.Put(record("b")); !errors.Is(err, unix.EROFS) {
		t.Errorf("Put: %v", err)
	}
	// The record would free what a new ADD takes.
	if err := s.Forget(t.Context(), "a", "eth0"); !errors.Is(err, unix.EROFS) {
		t.Errorf("Forget: %v", err)
	}
	var got []Record
	if all, err := s.Drain(t.Context(), "c1", Max, deliveries(&got, nil)); len(all) != 0 || !errors.Is(err, unix.EROFS) {
		t.Errorf("Drain: %v, %v", all, err)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"cluster":"c1","host":"10.0.0.11","containerID":"x","ifName":"eth0","startedAt":"2026-01-02T15:04:05Z"}`))
	s := In(f.TempDir())
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := s.Decode(text)
		if err != nil {
			return
		}
		if err := s.Put(r); err != nil {
			t.Fatalf("%+v was read and cannot be written: %v", r, err)
		}
	})
}
