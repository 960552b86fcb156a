package attach

import (
	"fmt"
	"path/filepath"

	"github.com/bcsnet/bcsnet/pkg/cni/nodefile"
)

// maxSize bounds a file, in octets: 64 addresses and names as long as they may be take less than half.
const maxSize = 16 << 10

// Dir is the directory with a file for each container and interface. It is empty after a boot, as the containers are
// gone then.
type Dir string

// In returns the directory of a node's directory of what does not outlive a boot.
func In(runDir string) Dir { return Dir(filepath.Join(runDir, "attach")) }

// Beside returns the path of another file of the node's directory of what does not outlive a boot.
func (d Dir) Beside(name string) string { return filepath.Join(filepath.Dir(string(d)), name) }

func (d Dir) files() nodefile.Store[*Attachment] {
	return nodefile.Store[*Attachment]{Dir: string(d), MaxSize: maxSize}
}

// Write writes the file of an attachment in the place of an earlier one. Whoever reads meanwhile gets one of the two.
func (d Dir) Write(a *Attachment) error {
	content, err := d.files().Encode(a)
	if err != nil {
		return fmt.Errorf("write an attachment: %w", err)
	}
	return nodefile.Replace(d.files().Path(a.ContainerID, a.IfName), content)
}

// Read returns the attachment of a container's interface. The error wraps fs.ErrNotExist where there is none.
func (d Dir) Read(id, ifName string) (*Attachment, error) { return d.files().Read(id, ifName) }

// Remove removes the file of a container's interface. It is no error that there is none.
func (d Dir) Remove(id, ifName string) error { return d.files().Remove(id, ifName) }

// Find returns the first attachment that is asked for; nil for none. Files that cannot be read are left out.
func (d Dir) Find(wanted func(*Attachment) bool) (*Attachment, error) {
	names, err := d.files().Names()
	for _, name := range names {
		if a, err := d.files().Load(filepath.Join(string(d), name)); err == nil && wanted(a) {
			return a, nil
		}
	}
	return nil, err
}

// Len counts the attachments.
func (d Dir) Len() (int, error) {
	names, err := d.files().Names()
	return len(names), err
}
