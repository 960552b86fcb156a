package attach

import (
	"errors"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const id = "3f1c9a"

func attachment() *Attachment {
	return &Attachment{
		ContainerID: id, IfName: "eth0", CNINetwork: "lan", MAC: "02:02:0a:00:00:15", MTU: 1400, VLAN: 7, Pool: "10.0.0.0",
		Addrs: []netip.Addr{netip.MustParseAddr("10.0.0.21"), netip.MustParseAddr("2001:db8::21")}, Migration: true,
	}
}

var compareAddrs = cmp.Comparer(func(a, b netip.Addr) bool { return a == b })

func TestWriteReadRemove(t *testing.T) {
	dir := At(filepath.Join(t.TempDir(), "run", "attach"))
	if _, err := dir.Read(id, "eth0"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Read before any Write: %v", err)
	}
	first, second := attachment(), attachment()
	second.MTU = 9000
	for _, a := range []*Attachment{first, second} {
		if err := dir.Write(a); err != nil {
			t.Fatal(err)
		}
		got, err := dir.Read(id, "eth0")
		if diff := cmp.Diff(a, got, compareAddrs); err != nil || diff != "" {
			t.Errorf("Read: %v (-want +got):\n%s", err, diff)
		}
	}
	files, err := os.ReadDir(dir.Dir)
	if err != nil || len(files) != 1 || files[0].Name() != "3f1c9a:eth0.json" {
		t.Errorf("the directory has %v, %v", files, err)
	}
	if info, err := os.Stat(filepath.Join(dir.Dir, "3f1c9a:eth0.json")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file's mode is %v, %v", info.Mode(), err)
	}
	for range 2 {
		if err := dir.Remove(id, "eth0"); err != nil {
			t.Error(err)
		}
	}
	if _, err := dir.Read(id, "eth0"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Read after Remove: %v", err)
	}
}

// TestNames has names that no container or interface can have, some of which lead out of the directory.
func TestNames(t *testing.T) {
	parent := t.TempDir()
	dir := At(filepath.Join(parent, "attach"))
	if err := os.WriteFile(filepath.Join(parent, "x:eth0.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ id, ifName string }{
		"no ID":                    {"", "eth0"},
		"an ID that leads out":     {"../x", "eth0"},
		"an absolute ID":           {"/etc/x", "eth0"},
		"an ID with a NUL":         {"a\x00b", "eth0"},
		"an ID of two lines":       {"a\nb", "eth0"},
		"a hidden ID":              {".new-1", "eth0"},
		"an ID that is too long":   {strings.Repeat("a", 201), "eth0"},
		"no interface":             {id, ""},
		"an interface that is ..":  {id, ".."},
		"an interface with /":      {id, "../../x"},
		"an interface with blanks": {id, "eth 0"},
		"too long for Linux":       {id, "sixteen-and-more"},
	} {
		t.Run(name, func(t *testing.T) {
			a := attachment()
			a.ContainerID, a.IfName = c.id, c.ifName
			if err := dir.Write(a); err == nil {
				t.Error("Write: no error")
			}
			if got, err := dir.Read(c.id, c.ifName); err == nil || errors.Is(err, fs.ErrNotExist) {
				t.Errorf("Read = %v, %v", got, err)
			}
			if err := dir.Remove(c.id, c.ifName); err == nil {
				t.Error("Remove: no error")
			}
		})
	}
	if files, err := filepath.Glob(filepath.Join(parent, "*")); err != nil || len(files) != 1 {
		t.Errorf("beside the directory there are %v, %v", files, err)
	}
}

// TestWriteRefuses has attachments that no allocator answers.
func TestWriteRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Attachment)
		want   string
	}{
		"MAC":              {func(a *Attachment) { a.MAC = "02:02" }, `mac "02:02"`},
		"MAC of many":      {func(a *Attachment) { a.MAC = "01:00:5e:00:00:01" }, "mac"},
		"MAC of 8 octets":  {func(a *Attachment) { a.MAC = "02:02:0a:00:00:15:00:00" }, "mac"},
		"MTU below 0":      {func(a *Attachment) { a.MTU = -1 }, "mtu -1"},
		"MTU too large":    {func(a *Attachment) { a.MTU = 65536 }, "mtu 65536"},
		"VLAN":             {func(a *Attachment) { a.VLAN = 4095 }, "vlan 4095"},
		"no address":       {func(a *Attachment) { a.Addrs = nil }, "addrs is empty"},
		"address of zero":  {func(a *Attachment) { a.Addrs[0] = netip.Addr{} }, "addrs"},
		"address 0.0.0.0":  {func(a *Attachment) { a.Addrs[0] = netip.IPv4Unspecified() }, "0.0.0.0"},
		"too many":         {func(a *Attachment) { a.Addrs = make([]netip.Addr, 65) }, "65 addresses"},
		"a name too large": {func(a *Attachment) { a.Pool = strings.Repeat("p", 20<<10) }, "octets"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := At(t.TempDir())
			a := attachment()
			c.change(a)
			if err := dir.Write(a); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Write: %v, want %q", err, c.want)
			}
			if files, err := os.ReadDir(dir.Dir); err != nil || len(files) != 0 {
				t.Errorf("the directory has %v, %v", files, err)
			}
		})
	}
}

// TestWriteFails has directories that cannot be written: nothing is left behind.
func TestWriteFails(t *testing.T) {
	parent := t.TempDir()
	file := filepath.Join(parent, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := At(file).Write(attachment()); err == nil {
		t.Error("a file in the place of the directory: no error")
	}
	taken := At(filepath.Join(parent, "taken"))
	if err := os.MkdirAll(filepath.Join(taken.Dir, "3f1c9a:eth0.json", "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := taken.Write(attachment()); err == nil {
		t.Error("a directory in the place of the file: no error")
	}
	if files, err := os.ReadDir(taken.Dir); err != nil || len(files) != 1 {
		t.Errorf("the directory has %v, %v", files, err)
	}
}

// TestReadDamaged has files that nobody wrote whole. The error names the file.
func TestReadDamaged(t *testing.T) {
	const right = `{"containerID":"3f1c9a","ifName":"eth0","addrs":["10.0.0.21"]}`
	for name, c := range map[string]struct{ content, want string }{
		"empty":                {"", "EOF"},
		"cut off":              {right[:30], "EOF"},
		"null":                 {"null", "null"},
		"another type":         {`[]`, "array"},
		"no object":            {"\x00\x00\x00", "invalid"},
		"two objects":          {right + right, "after the object"},
		"no addresses":         {`{"containerID":"3f1c9a","ifName":"eth0"}`, "addrs is empty"},
		"an address of a zone": {`{"containerID":"3f1c9a","ifName":"eth0","addrs":["fe80::1%eth0"]}`, "fe80::1%eth0"},
		"another container":    {`{"containerID":"3f1c9a-eth0","ifName":"eth0","addrs":["10.0.0.21"]}`, "container 3f1c9a-eth0"},
		"too large":            {right + strings.Repeat(" ", 20<<10), "octets"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "3f1c9a:eth0.json")
			if err := os.WriteFile(path, []byte(c.content), 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := At(dir).Read(id, "eth0")
			if err == nil || errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Read = %v, %v, want an error with %q and the file", got, err, c.want)
			}
		})
	}
	if a, err := At("").Decode([]byte(right[:len(right)-1] + `,"later":1}`)); err != nil {
		t.Errorf("a field of a newer release: %v, %v", a, err)
	}
}

// FuzzDecode decodes damaged files: what is taken can be written again.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"containerID":"3f1c9a","ifName":"eth0","mac":"02:02:0a:00:00:15","mtu":1400,"addrs":["10.0.0.21"]}`))
	f.Add([]byte(`{"containerID":"../x","ifName":"..","addrs":null}`))
	dir := At(f.TempDir())
	f.Fuzz(func(t *testing.T, content []byte) {
		a, err := dir.Decode(content)
		if err != nil {
			return
		}
		if err := dir.Write(a); err != nil {
			t.Fatalf("%+v was read and cannot be written: %v", a, err)
		}
		got, err := dir.Read(a.ContainerID, a.IfName)
		if diff := cmp.Diff(a, got, compareAddrs); err != nil || diff != "" {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	})
}
