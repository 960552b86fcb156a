package attach

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
	// DefaultDir is where bcsnet's plugins keep attachments. It is empty after a boot, as the containers are gone then.
	DefaultDir Dir = "/run/bcsnet/attach"
	// maxSize bounds a file, in octets: 64 addresses and names as long as they may be take less than half.
	maxSize = 16 << 10
	// maxID bounds a container ID, so that the name of its file stays below the 255 octets of Linux.
	maxID  = 200
	suffix = ".json"
)

// Dir is the directory with a file ID-IF.json for each container and interface.
type Dir string

// validName returns an error unless both names are as CNI has them, which also keeps the file inside its directory.
func validName(id, ifName string) error {
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

func (d Dir) path(id, ifName string) (string, error) {
	if err := validName(id, ifName); err != nil {
		return "", err
	}
	return filepath.Join(string(d), id+"-"+ifName+suffix), nil
}

// Write writes the file of an attachment in the place of an earlier one. Whoever reads meanwhile gets one of the two.
func (d Dir) Write(a *Attachment) error {
	if err := a.validate(); err != nil {
		return fmt.Errorf("write an attachment: %w", err)
	}
	path, err := d.path(a.ContainerID, a.IfName)
	if err != nil {
		return err
	}
	content, err := json.Marshal(a)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if len(content) > maxSize {
		return fmt.Errorf("write %s: %d octets are more than %d", path, len(content), maxSize)
	}
	if err := os.MkdirAll(string(d), 0o700); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return replace(path, content)
}

// replace writes a file beside its place and renames it. The name of the file beside does not end as an attachment's.
func replace(path string, content []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	_, err = f.Write(content)
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, errors.Join(err, os.Remove(f.Name())))
	}
	return nil
}

// Read returns the attachment of a container's interface. The error wraps fs.ErrNotExist where there is none.
func (d Dir) Read(id, ifName string) (*Attachment, error) {
	path, err := d.path(id, ifName)
	if err != nil {
		return nil, err
	}
	a, err := read(path)
	if err != nil {
		return nil, err
	}
	if a.ContainerID != id || a.IfName != ifName {
		return nil, fmt.Errorf("%s is of interface %s in container %s", path, a.IfName, a.ContainerID)
	}
	return a, nil
}

func read(path string) (*Attachment, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, maxSize+1))
	if err != nil {
		return nil, err
	}
	a, err := decode(content)
	if err != nil {
		return nil, fmt.Errorf("%s is damaged: %w", path, err)
	}
	return a, nil
}

// decode reads one attachment. Fields that it does not know are those of a newer release.
func decode(content []byte) (*Attachment, error) {
	if len(content) > maxSize {
		return nil, fmt.Errorf("it has more than %d octets", maxSize)
	}
	var a *Attachment
	decoder := json.NewDecoder(bytes.NewReader(content))
	if err := decoder.Decode(&a); err != nil {
		return nil, err
	}
	if a == nil {
		return nil, errors.New("it is null")
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something comes after the object")
	}
	return a, a.validate()
}

// Remove removes the file of a container's interface. It is no error that there is none.
func (d Dir) Remove(id, ifName string) error {
	path, err := d.path(id, ifName)
	if err != nil {
		return err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Len counts the attachments.
func (d Dir) Len() (n int, err error) {
	files, err := os.ReadDir(string(d))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	for _, file := range files {
		if strings.HasSuffix(file.Name(), suffix) {
			n++
		}
	}
	return n, err
}
