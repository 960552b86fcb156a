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
	// olderFile has the lines before the first one of calls.log.
	olderFile = callsFile + ".1"
	// maxCalls is the size in octets at which a new calls.log is begun: the two files have at most 4 MiB.
	maxCalls = 2 << 20
	// maxLine bounds a line: if several processes write, only short writes are atomic.
	maxLine = 4 << 10
)

// Outcome is the outcome of a call.
type Outcome string

// Outcomes.
const (
	// OK is a call that was done.
	OK Outcome = "ok"
	// Refused is a call that the allocator refused.
	Refused Outcome = "refused"
	// Unanswered is a call that no replica answered.
	Unanswered Outcome = "unanswered"
	// Conflict is an ADD whose addresses another machine uses.
	Conflict Outcome = "conflict"
	// Invalid is a call with invalid configuration or variables.
	Invalid Outcome = "invalid"
	// Failed is a call that failed on this node.
	Failed Outcome = "failed"
	// Recorded is a DEL that was stored as a record for later delivery.
	Recorded Outcome = "recorded"
	// Lost is a DEL that could neither be delivered nor stored. The garbage collection frees the address.
	Lost Outcome = "lost"
	// Delivered is a record that a replica accepted.
	Delivered Outcome = "delivered"
	// Dropped is a record that was removed without delivery.
	Dropped Outcome = "dropped"
)

// Call describes one call of the plugin, or one record that a call delivered.
type Call struct {
	At      time.Time `json:"at"`
	Command string    `json:"command"`
	Outcome Outcome   `json:"outcome"`
	// RequestID is the request's ID in the allocator's log.
	RequestID   string `json:"requestID,omitempty"`
	ContainerID string `json:"containerID,omitempty"`
	IfName      string `json:"ifName,omitempty"`
	Pod         string `json:"pod,omitempty"`
	CNINetwork  string `json:"cniNetwork,omitempty"`
	// Milliseconds is the duration of the call.
	Milliseconds float64 `json:"ms"`
	// Tries counts the requests.
	Tries int `json:"tries,omitempty"`
	// Replica is the replica that answered last.
	Replica string `json:"replica,omitempty"`
	// Reason is the allocator's reason.
	Reason string   `json:"reason,omitempty"`
	Addrs  []string `json:"addrs,omitempty"`
	// Error is the error that the runtime got.
	Error string `json:"error,omitempty"`
	// Notes are problems that did not make the call fail.
	Notes []string `json:"notes,omitempty"`
}

// Log appends a line to calls.log. Several processes may call it at the same time.
func (d Dir) Log(c Call) error {
	line, err := json.Marshal(c)
	if err != nil {
		return err
	}
	if len(line) >= maxLine { // only texts of others are long
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

// rotate replaces a full calls.log by a new one. If several processes try, only one does it.
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
