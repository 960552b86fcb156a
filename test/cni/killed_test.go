package cni_test

import (
	"strings"
	"testing"

	"github.com/google/uuid"
)

// TestKilled kills the plugin at each step of an ADD and of a DEL, as kill -9 and a power cut do. The runtime sends a
// DEL afterwards: nothing stays held, and the pod's next container gets an address.
func TestKilled(t *testing.T) {
	t.Parallel()
	if err := buildKilled(); err != nil {
		t.Fatal(err)
	}
	for _, step := range []string{"add-begun", "add-taken", "add-probed", "file-written", "add-attached", "add-answered"} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			n := newNode(t)
			n.pool("", nil, 20)
			n.programs = shared.killed
			pod := n.container("web")
			n.env = []string{"FAULTS_BREAK=ipam-" + step}
			out, err := pod.call("ADD", direct)
			n.wantError(err, "signal: killed")
			if (out != "") != (step == "add-answered") {
				t.Errorf("it wrote %q", out)
			}
			n.env = nil
			if _, err := pod.call("DEL", direct); err != nil {
				t.Error(err)
			}
			n.wantFree(n.addr(20))
			again := *pod
			again.id = uuid.NewString()
			again.addDirect()
			n.wantHeld(again.id, n.addr(20))
		})
	}
	for step, outage := range map[string]bool{
		"del-begun": false, "del-asked": false, "file-written": true, "del-recorded": true,
	} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			n := newNode(t)
			n.pool("", nil, 20)
			n.programs = shared.killed
			pod := n.container("web")
			pod.addDirect()
			if outage {
				n.relay.breakLines()
			}
			n.env = []string{"FAULTS_BREAK=ipam-" + step}
			_, err := pod.call("DEL", direct)
			n.wantError(err, "signal: killed")
			n.env = nil
			n.relay.instead(nil)
			if _, err := pod.call("DEL", direct); err != nil {
				t.Error(err)
			}
			n.wantFree(n.addr(20))
			if out, err := pod.drain(); err != nil || !strings.HasSuffix(out, "left 0\n") {
				t.Errorf("drain: %q, %v", out, err)
			}
		})
	}
	t.Run("record-delivered", func(t *testing.T) {
		t.Parallel()
		n := newNode(t)
		n.pool("", nil, 20)
		n.programs = shared.killed
		pod := n.container("web")
		pod.addDirect()
		n.relay.breakLines()
		if _, err := pod.call("DEL", direct); err != nil {
			t.Error(err)
		}
		n.relay.instead(nil)
		n.env = []string{"FAULTS_BREAK=ipam-record-delivered"}
		_, err := pod.drain()
		n.wantError(err, "signal: killed")
		n.env = nil
		n.wantFree(n.addr(20))
		// Somebody else has the address when the record is delivered once more.
		next := n.container("next")
		n.eventually(func() bool {
			next.addDirect()
			return len(n.files("var/undelivered")) == 0
		})
		n.wantHeld(next.id, n.addr(20))
	})
	t.Run("add-reported", func(t *testing.T) {
		t.Parallel()
		n := newNode(t)
		n.pool("", nil, 20, 21)
		n.squatter(n.addr(20), n.addr(21))
		n.programs = shared.killed
		pod := n.container("web")
		n.env = []string{"FAULTS_BREAK=ipam-add-reported"}
		list := conflist(t, "1.1.0", "lan", bridge, `"probe":true`)
		_, err := pod.add(list)
		n.wantError(err, "signal: killed")
		n.env = nil
		if err := pod.del(list); err != nil {
			t.Error(err)
		}
		n.wantHeld(pod.id)
	})
}
