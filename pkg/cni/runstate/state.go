package runstate

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
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

// Precision is the age from which on AnsweredAt is written again if nothing else changes.
const Precision = time.Second

// Dir is the directory that contains state.json and calls.log.
type Dir string

// State summarizes the calls since boot. The zero State stands for a boot without an answer.
type State struct {
	// Boot is the kernel's ID of the boot to which the state belongs.
	Boot string `json:"boot"`
	// BootedAt is the boot time by the clock that the calls use.
	BootedAt time.Time `json:"bootedAt"`
	// AnsweredAt is the time of a replica's last answer, or up to Precision before it.
	AnsweredAt time.Time `json:"answeredAt"`
	// Replica is the URL of that replica.
	Replica string `json:"replica"`
	// Receipt is the receipt of the last answered ADD. By it, a starting replica detects that the API server's store
	// was restored since.
	Receipt string `json:"receipt,omitempty"`
	// PoolsFull is the last ADD that was refused because the pools are full; nil after a later ADD got an address.
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

// Read returns the state of this boot. The state of another boot, or a damaged file, counts as none: the next answer
// writes it again.
func (d Dir) Read() (State, error) {
	boot, err := Boot()
	if err != nil {
		return State{}, err
	}
	return d.read(boot)
}

func (d Dir) read(boot string) (s State, err error) {
	f, err := os.Open(filepath.Join(string(d), stateFile))
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return s, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxState+1))
	if err != nil {
		return s, err
	}
	if len(text) > maxState || json.Unmarshal(text, &s) != nil || s.Boot != boot {
		return State{}, nil
	}
	return s, nil
}

// Update changes the state, based on the latest state that other calls have written. A concurrent reader gets the state
// before or after the change. If the change leaves the state as it is, nothing is written.
func (d Dir) Update(change func(*State)) error {
	boot, err := Boot()
	if err != nil {
		return err
	}
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
	before, err := d.read(boot)
	if err != nil {
		return err
	}
	after := before
	if change(&after); after == before {
		return nil
	}
	after.Boot = boot
	content, err := json.Marshal(after)
	if err != nil {
		return fmt.Errorf("write %s: %w", d, err)
	}
	return nodefile.Replace(filepath.Join(string(d), stateFile), content)
}

// flock waits for a lock. Its holders only read and write one small file.
func flock(f *os.File) error {
	for {
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
