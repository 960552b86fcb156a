package announce

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bcsnet/bcsnet/pkg/cni/attach"
)

// TestDel forgets the attachment and does not fail, whatever is gone.
func TestDel(t *testing.T) {
	for name, c := range map[string]struct {
		netNS, config string
		change        func(*call)
	}{
		"as it should be":        {config: config("", "", "192.0.2.7/24")},
		"the namespace is gone":  {netNS: "/run/netns/gone", config: config("", "", "192.0.2.7/24")},
		"no prevResult":          {config: `{"cniVersion":"1.1.0","name":"lan","type":"bcsnet-announce"}`},
		"a wrong configuration":  {config: `{"cniVersion":"1.1.0","name":"lan","type":"bcsnet-announce","mac":7}`},
		"a damaged file":         {change: func(c *call) { damage(t, c) }},
		"the directory is gone":  {change: func(c *call) { os.RemoveAll(string(c.plugin.Attachments)) }},
		"the file is a tree":     {change: func(c *call) { tree(t, c) }},
		"an ID that leads out":   {change: func(c *call) { c.args.ContainerID = "../x" }},
		"DEL before there is it": {change: func(c *call) { _ = c.plugin.Attachments.Remove(id, "eth0") }},
	} {
		t.Run(name, func(t *testing.T) {
			x := newCall(t, c.netNS, c.config, attachment("192.0.2.7"))
			if c.change != nil {
				c.change(x)
			}
			for range 2 {
				if err := x.plugin.del(x.args); err != nil {
					t.Errorf("DEL: %v", err)
				}
			}
			if _, err := x.plugin.Attachments.Read(id, "eth0"); err == nil && x.args.ContainerID == id {
				t.Error("the attachment is still there")
			}
		})
	}
}

func damage(t *testing.T, c *call) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(string(c.plugin.Attachments), id+"-eth0.json"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

// tree puts a directory with something in it into the place of the file, which then cannot be removed.
func tree(t *testing.T, c *call) {
	t.Helper()
	path := filepath.Join(string(c.plugin.Attachments), id+"-eth0.json")
	if err := errors.Join(os.Remove(path), os.MkdirAll(filepath.Join(path, "x"), 0o700)); err != nil {
		t.Fatal(err)
	}
}

// TestGC forgets old attachments of its own network that are in no list, and hands the call on.
func TestGC(t *testing.T) {
	all := []string{"gone", "other", "valid", "young"}
	for name, c := range map[string]struct {
		more string
		keep []string
		want string
	}{
		"some are valid":       {`,"cni.dev/valid-attachments":[{"containerID":"valid","ifname":"eth0"}]`, []string{"other", "valid", "young"}, ""},
		"the draft's name":     {`,"cni.dev/attachments":[{"containerID":"valid","ifname":"eth0"}]`, []string{"other", "valid", "young"}, ""},
		"none is valid":        {`,"cni.dev/valid-attachments":[]`, []string{"other", "young"}, ""},
		"none, as libcni says": {`,"cni.dev/valid-attachments":null`, []string{"other", "young"}, ""},
		"another interface":    {`,"cni.dev/valid-attachments":[{"containerID":"valid","ifname":"net1"}]`, []string{"other", "young"}, ""},
		"no list":              {``, all, "without cni.dev/valid-attachments"},
		"a list of no form":    {`,"cni.dev/valid-attachments":{}`, all, "cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			text := fmt.Sprintf(`{"cniVersion":"1.1.0","name":"lan","type":"bcsnet-announce"%s}`, c.more)
			x := newCall(t, "", text, nil)
			x.plugin.Now = func() time.Time { return time.Now().Add(time.Hour) }
			for _, container := range all {
				a := attachment("192.0.2.7")
				a.ContainerID, a.IfName, a.CNINetwork = container, "eth0", "lan"
				if container == "other" {
					a.CNINetwork = "storage"
				}
				if err := x.plugin.Attachments.Write(a); err != nil {
					t.Fatal(err)
				}
			}
			young := filepath.Join(string(x.plugin.Attachments), "young-eth0.json")
			if err := os.Chtimes(young, time.Time{}, x.plugin.Now()); err != nil {
				t.Fatal(err)
			}
			var collected string
			x.plugin.Collect = func(_ context.Context, config []byte) error {
				collected = string(config)
				return nil
			}
			err := x.plugin.gc(x.args)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("GC: %v, want %q", err, c.want)
			}
			if (collected == text) != (c.want == "") {
				t.Errorf("the IPAM plugin was called with %q", collected)
			}
			var kept []string
			for _, container := range all {
				if _, err := x.plugin.Attachments.Read(container, "eth0"); err == nil {
					kept = append(kept, container)
				}
			}
			slices.Sort(c.keep)
			if diff := cmp.Diff(c.keep, kept); diff != "" {
				t.Errorf("kept (-want +got):\n%s", diff)
			}
		})
	}
}

// TestGCErrors has a collection that fails, a directory that is not there, and files that nobody can read.
func TestGCErrors(t *testing.T) {
	const text = `{"cniVersion":"1.1.0","name":"lan","type":"bcsnet-announce","cni.dev/valid-attachments":[]}`
	x := newCall(t, "", text, attachment("192.0.2.7"))
	damage(t, x)
	x.plugin.Now = func() time.Time { return time.Now().Add(time.Hour) }
	if err := x.plugin.gc(x.args); err != nil {
		t.Errorf("a damaged file: %v", err)
	}
	if _, err := os.Stat(filepath.Join(string(x.plugin.Attachments), id+"-eth0.json")); err != nil {
		t.Errorf("a file of nobody knows whom is gone: %v", err)
	}
	no := errors.New("no replica answers")
	x.plugin.Collect = func(context.Context, []byte) error { return no }
	x.plugin.Attachments = attach.Dir(filepath.Join(t.TempDir(), "none"))
	if err := x.plugin.gc(x.args); !errors.Is(err, no) {
		t.Errorf("GC: %v, want %v", err, no)
	}
}

func TestStatus(t *testing.T) {
	x := newCall(t, "", `{"cniVersion":"1.1.0","name":"lan","type":"bcsnet-announce","mac":true}`, nil)
	if err := x.plugin.status(x.args); err != nil {
		t.Error(err)
	}
	x.args.StdinData = []byte(`{"cniVersion":"1.1.0","name":"lan","mac":"yes"}`)
	if err := x.plugin.status(x.args); err == nil {
		t.Error("a configuration that no ADD can follow: no error")
	}
}

// FuzzConfig decodes configurations: whatever they say, an address of the interface is valid.
func FuzzConfig(f *testing.F) {
	f.Add([]byte(config(`,"mac":true`, "192.0.2.1", "192.0.2.7/24", "2001:db8::7/64")))
	f.Add([]byte(`{"cniVersion":"0.3.0","prevResult":{"interfaces":[null],"ips":[{"interface":-1,"address":"x"}]}}`))
	f.Add([]byte(`{"cniVersion":"1.1.0","cni.dev/valid-attachments":[{"containerID":"a","ifname":"b"}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if _, err := validAttachments(text); err == nil && len(text) == 0 {
			t.Error("no list, and no error")
		}
		c, err := decode(text)
		if err != nil {
			return
		}
		have, err := c.attached("eth0")
		if err != nil {
			return
		}
		for _, addr := range have.addrs() {
			if !addr.IsValid() {
				t.Errorf("%q has an address that is none", text)
			}
		}
		if _, err := have.result.GetAsVersion(c.CNIVersion); err != nil && c.CNIVersion != "" {
			t.Errorf("%q was read as %s, and cannot be answered: %v", text, c.CNIVersion, err)
		}
	})
}
