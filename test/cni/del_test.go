package cni_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// direct is a configuration by which tests call bcsnet-ipam without a main plugin.
const direct = `{"cniVersion":"1.1.0","name":"lan","ipam":{"type":"bcsnet-ipam"}}`

// addDirect has a container get an address without a main plugin.
func (c *container) addDirect() {
	c.Helper()
	if out, err := c.call("ADD", direct); err != nil {
		c.Fatal(out, err)
	}
}

// lines returns what calls.log says of the outcomes of a command.
func (n *node) lines(command string) (outcomes []string) {
	n.Helper()
	for line := range strings.Lines(n.read("run/calls.log")) {
		if _, rest, ok := strings.Cut(line, `"command":"`+command+`","outcome":"`); ok {
			outcome, _, _ := strings.Cut(rest, `"`)
			outcomes = append(outcomes, outcome)
		}
	}
	return outcomes
}

// TestDELWhateverIsSaid has DELs with as little as runtimes say, and with configurations that were damaged since the
// ADD: each ends with 0 and frees the address.
func TestDELWhateverIsSaid(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		stdin string
		env   []string
	}{
		"the type alone":             {`{"type":"bcsnet-ipam"}`, []string{"CNI_NETNS="}},
		"neither netns nor CNI_ARGS": {direct, []string{"CNI_NETNS=", "CNI_ARGS="}},
		"a netns that is gone":       {direct, []string{"CNI_NETNS=/var/run/netns/gone"}},
		"a netns that is none":       {direct, []string{"CNI_NETNS=/dev/null"}},
		"a newer version":            {strings.Replace(direct, "1.1.0", "7.0.0", 1), nil},
		"a version that is none":     {`{"cniVersion":7,"name":"lan","ipam":{"type":"bcsnet-ipam"}}`, nil},
		"no name":                    {`{"cniVersion":"1.1.0","ipam":{"type":"bcsnet-ipam"}}`, nil},
		"a name that is none":        {`{"cniVersion":"1.1.0","name":"../x","ipam":{"type":"bcsnet-ipam"}}`, nil},
		"fields that are wrong":      {`{"cniVersion":"1.1.0","name":"lan","vlan":"x","ipam":{"type":"bcsnet-ipam","probe":7,"routes":"x"}}`, nil},
		"ipam is no object":          {`{"cniVersion":"1.1.0","name":"lan","ipam":"bcsnet-ipam"}`, nil},
		"cut off":                    {direct[:30], nil},
		"null":                       {`null`, nil},
		"nothing":                    {``, nil},
		"CNI_ARGS that are none":     {direct, []string{"CNI_ARGS=K8S_POD_NAME"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t)
			n.pool("", nil, 20)
			pod := n.container("web")
			pod.addDirect()
			for range 2 {
				if out, err := pod.call("DEL", c.stdin, c.env...); err != nil || out != "" {
					t.Errorf("DEL: %q, %v", out, err)
				}
			}
			n.wantFree(n.addr(20))
		})
	}
}

// TestDELWithoutVariables has DELs that do not say of which container.
func TestDELWithoutVariables(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	pod := n.container("web")
	for _, missing := range []string{"CNI_CONTAINERID", "CNI_IFNAME", "CNI_PATH"} {
		out, err := pod.call("DEL", direct, missing+"=")
		n.wantError(err, `"code": 4`, missing)
		if out == "" {
			t.Error("no error on standard output")
		}
	}
}

// TestUndelivered has no replica at a DEL: it ends with 0, and the next call, or drain, delivers.
func TestUndelivered(t *testing.T) {
	t.Parallel()
	for name, deliver := range map[string]func(next *container){
		"the next ADD": (*container).addDirect,
		"the next DEL": func(next *container) {
			if _, err := next.call("DEL", direct); err != nil {
				next.Error(err)
			}
		},
		"drain": func(next *container) {
			if out, err := next.drain(); err != nil || out != "delivered 1, dropped 0, left 0\n" {
				next.Errorf("drain: %q, %v", out, err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t)
			n.pool("", nil, 20, 21)
			pod := n.container("web")
			pod.addDirect()
			addr := n.holding(pod.id)
			n.relay.breakLines()
			if out, err := pod.call("DEL", direct, "CNI_NETNS="); err != nil || out != "" {
				t.Errorf("DEL: %q, %v", out, err)
			}
			if got := n.files("var/undelivered"); !slices.Equal(got, []string{pod.id + ":eth0.json"}) {
				t.Fatalf("records: %v", got)
			}
			record := n.read("var/undelivered/" + pod.id + ":eth0.json")
			for _, want := range []string{
				`"cluster":"c1"`, fmt.Sprintf(`"host":%q`, n.Host), fmt.Sprintf(`"pod":"default/%s"`, pod.pod),
				fmt.Sprintf(`"podUID":%q`, pod.uid), `"startedAt":"`,
			} {
				if !strings.Contains(record, want) {
					t.Errorf("the record %s lacks %s", record, want)
				}
			}
			n.wantHeld(pod.id, addr)
			n.relay.instead(nil)
			next := n.container("next")
			n.eventually(func() bool { // a busy machine may need more than one call has time for
				deliver(next)
				return len(n.files("var/undelivered")) == 0
			})
			n.wantHeld(pod.id)
			if got := n.lines("DEL"); !slices.Contains(got, "recorded") || !slices.Contains(got, "delivered") {
				t.Errorf("calls.log has %v", got)
			}
		})
	}
}

// drain runs bcsnet-ipam drain.
func (c *container) drain() (string, error) {
	c.Helper()
	var out string
	var err error
	c.host.Do(c.T, func() error {
		buffer, runErr := c.run(c.Context(), nil, nil, c.programs+"/bcsnet-ipam", "drain")
		out, err = buffer.String(), runErr
		return nil
	})
	return out, err
}

// TestRecords has records that must not, or cannot, be delivered.
func TestRecords(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.pool("", nil, 20)
	pod := n.container("web")
	pod.addDirect()
	if err := os.MkdirAll(filepath.Join(n.dir, "var/undelivered"), 0o700); err != nil {
		t.Fatal(err)
	}
	record := func(cluster, id string, at time.Time) string {
		return fmt.Sprintf(`{"cluster":%q,"host":%q,"containerID":%q,"ifName":"eth0","pod":"","podUID":"","startedAt":%q}`, cluster,
			n.Host, id, at.Format(time.RFC3339Nano))
	}
	t.Run("of another cluster, and damaged", func(t *testing.T) {
		// The first would free what the pod has.
		n.write("var/undelivered/"+pod.id+":eth0.json", record("c2", pod.id, time.Now()))
		n.write("var/undelivered/cut:eth0.json", record("c1", "cut", time.Now())[:40])
		if out, err := pod.drain(); err != nil || out != "delivered 0, dropped 2, left 0\n" {
			t.Errorf("drain: %q, %v", out, err)
		}
		n.wantHeld(pod.id, n.addr(20))
		if text := n.read("run/calls.log"); !strings.Contains(text, "it is of cluster c2") || !strings.Contains(text, "damaged") {
			t.Errorf("calls.log: %s", text)
		}
	})
	t.Run("of a container that is attached again", func(t *testing.T) {
		// So old that the allocator would take it for a release of now.
		n.write("var/undelivered/"+pod.id+":eth0.json", record("c1", pod.id, time.Now().Add(-time.Hour)))
		pod.addDirect()
		if out, err := pod.drain(); err != nil || out != "delivered 0, dropped 0, left 0\n" {
			t.Errorf("drain: %q, %v", out, err)
		}
		n.wantHeld(pod.id, n.addr(20))
	})
	t.Run("no replica", func(t *testing.T) {
		n.write("var/undelivered/x:eth0.json", record("c1", "x", time.Now()))
		n.relay.instead(unreachable)
		defer n.relay.instead(nil)
		n.configure("cluster", "c1", "host", n.Host, "replicas", []string{"http://127.0.0.1:1"})
		before := n.before
		n.before = "" // drain would ask for a minute
		defer func() { n.before = before }()
		n.configure("cluster", "c1", "host", n.Host)
		out, err := pod.drain()
		n.wantError(err, "exit status 1", "no replica", "replicas")
		if !strings.HasSuffix(out, "left 1\n") {
			t.Errorf("drain: %q", out)
		}
	})
	t.Run("usage", func(t *testing.T) {
		var err error
		n.host.Do(t, func() error {
			_, err = n.run(t.Context(), nil, nil, n.programs+"/bcsnet-ipam", "drain", "--all")
			return nil
		})
		n.wantError(err, "exit status 2", "usage: bcsnet-ipam drain [--config-dir DIR]")
	})
}

// TestDisk has a disk that takes nothing: a DEL ends with 0 all the same, and is counted; an ADD with a record that
// cannot be removed fails.
func TestDisk(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]string{
		"full":      `mount -t tmpfs -o size=4k,nr_inodes=2 tmpfs /var/lib/cni/bcsnet`,
		"read-only": `mount -o remount,ro,bind /var/lib/cni/bcsnet`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t)
			n.pool("", nil, 20)
			pod := n.container("web")
			n.before = before
			pod.addDirect()
			n.relay.breakLines()
			if out, err := pod.call("DEL", direct); err != nil || out != "" {
				t.Errorf("DEL: %q, %v", out, err)
			}
			if got := n.lines("DEL"); !slices.Equal(got, []string{"lost"}) {
				t.Errorf("calls.log has %v", got)
			}
			n.relay.instead(nil)
			if out, err := pod.call("DEL", direct); err != nil || out != "" {
				t.Errorf("DEL: %q, %v", out, err)
			}
			n.wantFree(n.addr(20))
		})
	}
	t.Run("of the run directory", func(t *testing.T) {
		t.Parallel()
		n := newNode(t)
		n.pool("", nil, 20)
		pod := n.container("web")
		n.before = `mount -o remount,ro,bind /run/bcsnet`
		_, err := pod.call("ADD", direct)
		n.wantError(err, `"code": 5`, "cannot be left for bcsnet-announce", "read-only")
		n.wantHeld(pod.id)
		if out, err := pod.call("DEL", direct); err != nil || out != "" {
			t.Errorf("DEL: %q, %v", out, err)
		}
	})
}

// TestClusterIsGone has a network of a cluster that is not there any more: DELs end, and each later one, too.
func TestClusterIsGone(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	pod := n.container("web")
	n.configure("cluster", "gone", "host", n.Host, "replicas", []string{"http://127.0.0.1:1"})
	_, err := pod.call("ADD", direct) // takes its 30 s
	n.wantError(err, `"code": 11`, "no replica of the allocator answered: http://127.0.0.1:1: ", "refused")
	if out, err := pod.call("DEL", direct); err != nil || out != "" {
		t.Errorf("DEL: %q, %v", out, err)
	}
	// The cluster that the node is in now has nothing to do with it.
	n.configure("cluster", "c1", "host", n.Host, "replicas", []string{n.relay.url})
	other := n.container("other")
	if _, err := other.call("DEL", direct); err != nil {
		t.Error(err)
	}
	if got := n.files("var/undelivered"); len(got) != 0 {
		t.Errorf("records: %v", got)
	}
	if text := n.read("run/calls.log"); !strings.Contains(text, "it is of cluster gone, and this is c1") {
		t.Errorf("calls.log: %s", text)
	}
}
