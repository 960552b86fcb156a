package runstate

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/bcsnet/bcsnet/pkg/cni/nodefile"
)

// positionFile stores the position up to which calls.log was read.
const positionFile = "calls.read"

// Follower reads calls.log as it grows, across rotations, and continues at the position at which the directory's last
// Follower stopped.
type Follower struct {
	dir Dir
	now *reading
	// earlier is the previous file: a call that opened it before the rotation may still write a line to it.
	earlier *reading
	kept    position
}

// reading is an open file and the position up to which it was read.
type reading struct {
	file   *os.File
	inode  uint64
	offset int64
}

// position is the content of positionFile.
type position struct {
	Inode  uint64 `json:"inode"`
	Offset int64  `json:"offset"`
}

// Follow returns a Follower of the directory. If there is no stored position, it begins with the oldest line.
func (d Dir) Follow() *Follower { return &Follower{dir: d} }

// Close closes the files.
func (f *Follower) Close() error {
	err := errors.Join(f.now.close(), f.earlier.close())
	f.now, f.earlier = nil, nil
	return err
}

// Next reads the lines since the last Next, passes each to a function, and returns the number of unreadable lines. If
// there are two rotations within one Next, the lines of the file between them are lost.
func (f *Follower) Next(each func(Call)) (unreadable int, err error) {
	if f.now == nil {
		if err := f.begin(); err != nil {
			return 0, err
		}
	}
	for {
		bad, err := f.earlier.lines(each)
		unreadable += bad
		if err != nil {
			return unreadable, err
		}
		bad, err = f.now.lines(each)
		unreadable += bad
		if err != nil {
			return unreadable, err
		}
		next, err := open(filepath.Join(string(f.dir), callsFile))
		switch {
		case err != nil:
			return unreadable, err
		case next == nil, f.now != nil && next.inode == f.now.inode:
			return unreadable, errors.Join(next.close(), f.keep())
		}
		err = f.earlier.close()
		f.earlier, f.now = f.now, next
		if err != nil {
			return unreadable, err
		}
	}
}

// begin opens the file at which the last Follower stopped; without one, the oldest file.
func (f *Follower) begin() error {
	var last position
	text, err := os.ReadFile(filepath.Join(string(f.dir), positionFile))
	if err == nil && json.Unmarshal(text, &last) != nil {
		last = position{} // all lines are read once more
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, name := range []string{callsFile, olderFile} {
		r, err := open(filepath.Join(string(f.dir), name))
		if err != nil {
			return err
		}
		if r == nil {
			continue
		}
		if err := f.now.close(); err != nil {
			return err
		}
		f.now = r // the older one of the two, unless the newer one was read before
		if r.inode == last.Inode {
			r.offset, f.kept = last.Offset, last
			return nil
		}
	}
	return nil
}

// keep stores the position up to which the file was read.
func (f *Follower) keep() error {
	if f.now == nil || f.kept == (position{f.now.inode, f.now.offset}) {
		return nil
	}
	p := position{f.now.inode, f.now.offset}
	content, err := json.Marshal(p)
	if err == nil {
		err = nodefile.Replace(filepath.Join(string(f.dir), positionFile), content)
	}
	if err == nil {
		f.kept = p
	}
	return err
}

// open opens a file for reading from its beginning; nil if there is none.
func open(path string) (*reading, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // a nil reading reads nothing
	}
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil, errors.Join(errors.New("the file system numbers no files"), file.Close())
	}
	return &reading{file: file, inode: stat.Ino}, nil
}

// lines passes on all complete lines from the offset on, and advances the offset.
func (r *reading) lines(each func(Call)) (unreadable int, err error) {
	if r == nil {
		return 0, nil
	}
	info, err := r.file.Stat()
	if err != nil {
		return 0, err
	}
	if r.offset < 0 || info.Size() < r.offset { // somebody emptied it, or it reuses the inode of a deleted file
		r.offset = 0
	}
	text, err := io.ReadAll(io.NewSectionReader(r.file, r.offset, info.Size()-r.offset))
	if err != nil {
		return 0, err
	}
	for line := range bytes.Lines(text) {
		if line[len(line)-1] != '\n' {
			break // the line is still being written
		}
		r.offset += int64(len(line))
		var c Call
		if json.Unmarshal(line, &c) != nil {
			unreadable++
			continue
		}
		each(c)
	}
	return unreadable, nil
}

func (r *reading) close() error {
	if r == nil {
		return nil
	}
	return r.file.Close()
}
