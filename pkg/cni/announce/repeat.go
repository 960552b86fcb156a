package announce

import (
	"encoding/json"
	"errors"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/bcsnet/bcsnet/pkg/cni/neighbour"
)

// pauses returns the pauses before each repetition: a frame may get lost, especially right after a port came up.
func pauses() []time.Duration {
	return []time.Duration{20 * time.Millisecond, 180 * time.Millisecond, 800 * time.Millisecond}
}

// linkFile is the descriptor of the socket in the repeating process.
const linkFile = 3

// repetition is the input of a process that repeats announcements.
type repetition struct {
	// Link is the index of the link in the socket's namespace.
	Link  int          `json:"link"`
	Addrs []netip.Addr `json:"addrs"`
}

// repeatLater starts a process that repeats the announcements and ends within a second, so that a pod's start does not
// wait for it. The process inherits the sender's socket, but no file of the runtime on which the runtime would wait. If
// no slot is free, the plugin itself repeats the announcements once.
func (p *Plugin) repeatLater(sender *neighbour.Sender, addrs []netip.Addr) error {
	place, err := takePlace(p.Places)
	if errors.Is(err, errNoPlace) {
		<-time.After(pauses()[0])
		return announceOn(sender, addrs)
	}
	if err != nil {
		return err
	}
	defer place.Close()
	text, err := json.Marshal(repetition{sender.Index(), addrs})
	if err != nil {
		return err
	}
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	defer read.Close()
	defer write.Close()
	later := exec.Command(p.Repeater[0], p.Repeater[1:]...)
	later.Args[0] = "bcsnet-announce" // the name that ps shows
	later.Stdin, later.ExtraFiles = read, []*os.File{sender.File(), place}
	later.Dir, later.Env, later.SysProcAttr = "/", []string{}, &syscall.SysProcAttr{Setsid: true}
	if err := later.Start(); err != nil {
		return err
	}
	if _, err := write.Write(text); err != nil { // a pipe takes 64 KiB without a reader
		return err
	}
	return later.Process.Release()
}

// Repeat repeats the announcements of the addresses that it reads from standard input, with the socket of a plugin that
// has ended. It uses the link's current MAC, because a later plugin may have changed it. It ends early if the link is
// gone, because then the pod is gone, too.
func Repeat(in io.Reader) {
	var r repetition
	if err := json.NewDecoder(in).Decode(&r); err != nil {
		return
	}
	sender := neighbour.NewSender(os.NewFile(linkFile, "link"), r.Link)
	for _, pause := range pauses() {
		<-time.After(pause)
		if err := announceOn(sender, r.Addrs); err != nil {
			return
		}
	}
}
