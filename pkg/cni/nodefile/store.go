package nodefile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/containernetworking/cni/pkg/utils"
)

const (
	// maxID bounds a container ID, so that the name of its file has at most the 255 octets of Linux.
	maxID  = 200
	suffix = ".json"
	// between separates the two parts of a file name. CNI allows it in neither part.
	between = ":"
	// formerly is the separator of earlier releases. Both parts may contain it, so two attachments may share such a
	// name; the content of the file identifies the attachment.
	formerly = "-"
)

// Entry is the content of one file, about one interface of one container.
type Entry interface {
	// Attachment returns the container's ID and the name of the interface.
	Attachment() (id, ifName string)
	// Validate returns an error that names the first invalid field.
	Validate() error
}

// Store is a directory with a file ID:IF.json for each container and interface.
type Store[T Entry] struct {
	Dir string
	// MaxSize bounds a file, in octets.
	MaxSize int
}

// ValidNames returns an error unless both names are valid in CNI, which also keeps the file inside its directory.
func ValidNames(id, ifName string) error {
	if err := utils.ValidateContainerID(id); err != nil {
		return fmt.Errorf("container ID %.80q is none: %w", id, err)
	}
	if len(id) > maxID {
		return fmt.Errorf("container ID %.80q has %d characters, %d at most are possible", id, len(id), maxID)
	}
	if err := utils.ValidateInterfaceName(ifName); err != nil {
		return fmt.Errorf("interface name %.80q is none: %w", ifName, err)
	}
	return nil
}

// Path returns the path of an attachment's file.
func (s Store[T]) Path(id, ifName string) string {
	return filepath.Join(s.Dir, id+between+ifName+suffix)
}

// Encode returns the content of an entry's file.
func (s Store[T]) Encode(e T) ([]byte, error) {
	if err := e.Validate(); err != nil {
		return nil, err
	}
	content, err := json.Marshal(e)
	if err == nil && len(content) > s.MaxSize {
		err = fmt.Errorf("%d octets are more than %d", len(content), s.MaxSize)
	}
	return content, err
}

// Decode parses the content of a file. Unknown fields belong to a newer release and are ignored.
func (s Store[T]) Decode(content []byte) (e T, err error) {
	if len(content) > s.MaxSize {
		return e, fmt.Errorf("it has more than %d octets", s.MaxSize)
	}
	var read *T
	decoder := json.NewDecoder(bytes.NewReader(content))
	if err := decoder.Decode(&read); err != nil {
		return e, err
	}
	if read == nil {
		return e, errors.New("it is null")
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return e, errors.New("something comes after the object")
	}
	return *read, (*read).Validate()
}

// Load reads a file.
func (s Store[T]) Load(path string) (e T, err error) {
	f, err := os.Open(path)
	if err != nil {
		return e, err
	}
	defer f.Close()
	return s.LoadFrom(f)
}

// LoadFrom reads an open file. The error is ErrDamaged if the content is invalid.
func (s Store[T]) LoadFrom(f *os.File) (e T, err error) {
	content, err := io.ReadAll(io.LimitReader(f, int64(s.MaxSize)+1))
	if err != nil {
		return e, err
	}
	if e, err = s.Decode(content); err != nil {
		return e, fmt.Errorf("%s %w: %w", f.Name(), ErrDamaged, err)
	}
	return e, nil
}

// ErrDamaged is the error for a file with invalid content.
var ErrDamaged = errors.New("is damaged")

// Read returns the directory's entry for an attachment. The error wraps fs.ErrNotExist if there is none.
func (s Store[T]) Read(id, ifName string) (e T, err error) {
	paths, err := s.Paths(id, ifName)
	if err != nil {
		return e, err
	}
	if len(paths) == 0 {
		return e, &fs.PathError{Op: "open", Path: s.Path(id, ifName), Err: fs.ErrNotExist}
	}
	if e, err = s.Load(paths[0]); err != nil {
		return e, err
	}
	if gotID, gotIf := e.Attachment(); gotID != id || gotIf != ifName {
		return e, fmt.Errorf("%s is of interface %s in container %s", paths[0], gotIf, gotID)
	}
	return e, nil
}

// Paths returns the existing files of an attachment: its own, and one that an earlier release wrote.
func (s Store[T]) Paths(id, ifName string) (paths []string, err error) {
	if err := ValidNames(id, ifName); err != nil {
		return nil, err
	}
	own, former := s.Path(id, ifName), filepath.Join(s.Dir, id+formerly+ifName+suffix)
	if _, err := os.Lstat(own); err == nil {
		paths = append(paths, own)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	switch e, err := s.Load(former); {
	case errors.Is(err, fs.ErrNotExist):
	case errors.Is(err, ErrDamaged): // it belongs to no attachment any more
		paths = append(paths, former)
	case err != nil:
		return nil, err
	default:
		if gotID, gotIf := e.Attachment(); gotID == id && gotIf == ifName {
			paths = append(paths, former)
		}
	}
	return paths, nil
}

// Remove removes the files of an attachment. If there are none, that is not an error.
func (s Store[T]) Remove(id, ifName string) error {
	paths, err := s.Paths(id, ifName)
	for _, path := range paths {
		if gone := os.Remove(path); gone != nil && !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
	}
	return err
}

// Len counts the files.
func (s Store[T]) Len() (int, error) {
	names, err := s.Names()
	return len(names), err
}

// Each calls do with the path of each file, and its entry or read error, until do returns false. It returns an error if
// the files cannot be listed.
func (s Store[T]) Each(do func(path string, e T, err error) (more bool)) error {
	names, err := s.Names()
	for _, name := range names {
		path := filepath.Join(s.Dir, name)
		e, err := s.Load(path)
		if !do(path, e, err) {
			break
		}
	}
	return err
}

// Names returns the names of all files, sorted.
func (s Store[T]) Names() (names []string, err error) {
	entries, err := os.ReadDir(s.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), suffix) {
			names = append(names, e.Name())
		}
	}
	return names, err
}
