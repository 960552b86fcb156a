package announce

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
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
		"the directory is gone":  {change: func(c *call) { os.RemoveAll(c.plugin.Attachments.Dir) }},
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
	if err := os.WriteFile(filepath.Join(c.plugin.Attachments.Dir, id+":eth0.json"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

// tree puts a directory with something in it into the place of the file, which then cannot be removed.
func tree(t *testing.T, c *call) {
	t.Helper()
	path := filepath.Join(c.plugin.Attachments.Dir, id+":eth0.json")
	if err := errors.Join(os.Remove(path), os.MkdirAll(filepath.Join(path, "x"), 0o700)); err != nil {
		t.Fatal(err)
	}
}

// TestGC hands the call on as it is, and the error back. A configuration that cannot be read is not handed on.
func TestGC(t *testing.T) {
	const text = `{"cniVersion":"1.1.0","name":"lan","type":"bcsnet-announce","cni.dev/valid-attachments":[]}`
	x := newCall(t, "", text, nil)
	no, got := errors.New("no replica answers"), ""
	x.plugin.Collect = func(_ context.Context, config []byte) error {
		got += string(config)
		return no
	}
	if err := x.plugin.gc(x.args); !errors.Is(err, no) || got != text {
		t.Errorf("GC: %v, with %q", err, got)
	}
	x.args.StdinData = []byte(`{"cniVersion":"1.1.0","name":"lan","mac":"yes","cni.dev/valid-attachments":[]}`)
	if err := x.plugin.gc(x.args); err == nil || errors.Is(err, no) || got != text {
		t.Errorf("GC of a wrong configuration: %v, with %q", err, got)
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
	f.Fuzz(func(t *testing.T, text []byte) {
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
