package runstate

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bcsnet/bcsnet/pkg/cni/nodefile"
)

const (
	stateFile = "state.json"
	// maxState bounds the file, in octets.
	maxState = 16 << 10
	bootFile = "/proc/sys/kernel/random/boot_id"
)

// Dir is the directory of state.json and calls.log.
type Dir string

// State is what the calls since boot came to. The zero State is that of a boot without an answer.
type State struct {
	// Boot is the kernel's ID of the boot that the state is of.
	Boot string `json:"boot"`
	// BootedAt is when the node booted by the clock that its calls go by.
	BootedAt time.Time `json:"bootedAt"`
	// AnsweredAt is when a replica last answered.
	AnsweredAt time.Time `json:"answeredAt"`
	// Replica is the URL of the one that did.
	Replica string `json:"replica"`
	// Receipt is that of the last ADD that was answered. It tells replicas that begin whether the API server's store
	// was put back since.
	Receipt string `json:"receipt,omitempty"`
	// PoolsFull is the last ADD that was refused because the pools are full; nil once another one got an address.
	PoolsFull *Full `json:"poolsFull,omitempty"`
}

// Full is a refusal because pools are full.
type Full struct {
	At      time.Time `json:"at"`
	Message string    `json:"message"`
}

// Boot returns the kernel's ID of this boot.
func Boot() (string, error) {
	text, err := os.ReadFile(bootFile)
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(string(text)), nil
}

// Read returns the state of this boot. What another boot left, and a file that is damaged, count as none: the next
// answer writes it again.
func (d Dir) Read() (s State, err error) {
	path := filepath.Join(string(d), stateFile)
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return s, nil
	case err != nil:
		return s, err
	case info.Size() > maxState:
		return s, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return s, err
	}
	boot, err := Boot()
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal(text, &s); err != nil || s.Boot != boot {
		return State{}, nil //nolint:nilerr // the next answer writes it anew
	}
	return s, nil
}

// Update changes the state, with what other calls have written since it was read. Whoever reads meanwhile gets the
// state before or after it.
func (d Dir) Update(change func(*State)) error {
	if err := os.MkdirAll(string(d), 0o700); err != nil {
		return err
	}
	lock, err := os.Open(string(d))
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := flock(lock); err != nil {
		return fmt.Errorf("lock %s: %w", d, err)
	}
	s, err := d.Read()
	if err != nil {
		return err
	}
	change(&s)
	return d.write(s)
}

// flock waits for a lock. Whoever has it reads and writes one small file.
func flock(f *os.File) error {
	for {
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

func (d Dir) write(s State) (err error) {
	path := filepath.Join(string(d), stateFile)
	if s.Boot, err = Boot(); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	content, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nodefile.Replace(path, content)
}
