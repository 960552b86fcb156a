package runstate

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

const (
	callsFile = "calls.log"
	// olderFile has the lines before those of calls.log.
	olderFile = callsFile + ".1"
	// maxCalls is from which size on, in octets, a new calls.log is begun: the two files have 4 MiB at most.
	maxCalls = 2 << 20
	// maxLine bounds a line: with several processes writing, only a short write is a whole one.
	maxLine = 4 << 10
)

// Outcome is what a call came to.
type Outcome string

// Outcomes.
const (
	// OK is a call that was done.
	OK Outcome = "ok"
	// Refused is a call that the allocator refused.
	Refused Outcome = "refused"
	// Unanswered is a call that no replica answered.
	Unanswered Outcome = "unanswered"
	// Conflict is an ADD whose addresses somebody else has.
	Conflict Outcome = "conflict"
	// Invalid is a call whose configuration or variables are wrong.
	Invalid Outcome = "invalid"
	// Failed is a call that failed on this node.
	Failed Outcome = "failed"
	// Recorded is a DEL that a record will deliver.
	Recorded Outcome = "recorded"
	// Lost is a DEL that neither a replica nor the disk took. Collection frees the address.
	Lost Outcome = "lost"
	// Delivered is a record that a replica took.
	Delivered Outcome = "delivered"
	// Dropped is a record that was removed undelivered.
	Dropped Outcome = "dropped"
)

// Call is one call of the plugin, or one record that a call delivered.
type Call struct {
	At      time.Time `json:"at"`
	Command string    `json:"command"`
	Outcome Outcome   `json:"outcome"`
	// RequestID is the one that the allocator's log has, too.
	RequestID   string `json:"requestID,omitempty"`
	ContainerID string `json:"containerID,omitempty"`
	IfName      string `json:"ifName,omitempty"`
	Pod         string `json:"pod,omitempty"`
	CNINetwork  string `json:"cniNetwork,omitempty"`
	// Milliseconds is how long the call took.
	Milliseconds float64 `json:"ms"`
	// Tries counts the requests.
	Tries int `json:"tries,omitempty"`
	// Replica is the one that answered last.
	Replica string `json:"replica,omitempty"`
	// Reason is the allocator's word.
	Reason string   `json:"reason,omitempty"`
	Addrs  []string `json:"addrs,omitempty"`
	// Error is what the runtime got as an error.
	Error string `json:"error,omitempty"`
	// Notes are things that went wrong without failing the call.
	Notes []string `json:"notes,omitempty"`
}

// Log appends a line to calls.log. Several processes may do so at once.
func (d Dir) Log(c Call) error {
	line, err := json.Marshal(c)
	if err != nil {
		return err
	}
	if len(line) >= maxLine { // long texts are others'
		c.Error, c.Notes = clip(c.Error), []string{fmt.Sprintf("%d notes were left out", len(c.Notes))}
		c.Addrs, c.CNINetwork, c.Pod, c.Reason = nil, clip(c.CNINetwork), clip(c.Pod), clip(c.Reason)
		if line, err = json.Marshal(c); err != nil {
			return err
		}
	}
	path := filepath.Join(string(d), callsFile)
	if err := os.MkdirAll(string(d), 0o700); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	err = errors.Join(err, d.rotate(f), f.Close())
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// rotate begins a new calls.log after one that is full. Of several processes, one does it.
func (d Dir) rotate(f *os.File) error {
	info, err := f.Stat()
	if err != nil || info.Size() < maxCalls {
		return err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil //nolint:nilerr // another process is at it
	}
	path := filepath.Join(string(d), callsFile)
	now, err := os.Stat(path)
	if err != nil || !os.SameFile(info, now) {
		return nil //nolint:nilerr // another one has done it
	}
	return os.Rename(path, filepath.Join(string(d), olderFile))
}

func clip(s string) string {
	const most = 512
	if len(s) <= most {
		return s
	}
	return s[:most] + "…"
}
