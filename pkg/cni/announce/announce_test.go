package announce

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/containernetworking/cni/pkg/skel"
	types100 "github.com/containernetworking/cni/pkg/types/100"
	"github.com/mdlayher/packet"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/bcsnet/bcsnet/pkg/cni/attach"
	"github.com/bcsnet/bcsnet/test/lan"
)

// TestMain is also the process that a call of the plugin starts.
func TestMain(m *testing.M) {
	if slices.Equal(os.Args[1:], []string{"repeat"}) {
		Repeat(os.Stdin)
		return
	}
	goleak.VerifyTestMain(m)
}

const id = "3f1c9a"

// call is one call of the plugin for eth0 of a pod.
type call struct {
	plugin         *Plugin
	args           *skel.CmdArgs
	stdout, stderr *bytes.Buffer
}

// newCall returns a call after an IPAM plugin that wrote an attachment, nil for none.
func newCall(t *testing.T, netNS, config string, x *attach.Attachment) *call {
	t.Helper()
	c := &call{stdout: &bytes.Buffer{}, stderr: &bytes.Buffer{}}
	c.plugin = &Plugin{Attachments: attach.At(t.TempDir()), Places: filepath.Join(t.TempDir(), "places"), Stdout: c.stdout, Stderr: c.stderr,
		Repeater: []string{"/proc/self/exe", "repeat"}}
	c.args = &skel.CmdArgs{ContainerID: id, Netns: netNS, IfName: "eth0", StdinData: []byte(config)}
	if x != nil {
		x.ContainerID, x.IfName, x.CNINetwork = id, "eth0", "lan"
		if err := c.plugin.Attachments.Write(x); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// config returns a configuration with more fields, and the result of a main plugin for addresses in CIDR notation.
func config(more, gateway string, addrs ...string) string {
	var ips []string
	for _, addr := range addrs {
		own := ""
		if gateway != "" {
			own = fmt.Sprintf(`,"gateway":%q`, gateway)
		}
		ips = append(ips, fmt.Sprintf(`{"interface":1,"address":%q%s}`, addr, own))
	}
	return fmt.Sprintf(`{"cniVersion":"1.1.0","name":"lan","type":"bcsnet-announce"%s,"prevResult":{"cniVersion":"1.1.0",`+
		`"interfaces":[{"name":"br0","mac":"02:00:00:00:00:99"},{"name":"eth0","mac":"02:00:00:00:00:98","sandbox":"/run/netns/x"}],`+
		`"ips":[%s],"dns":{"domain":"pods.example"}}}`, more, strings.Join(ips, ","))
}

func attachment(addrs ...string) *attach.Attachment {
	x := &attach.Attachment{Pool: "lan"}
	for _, addr := range addrs {
		x.Addrs = append(x.Addrs, netip.MustParseAddr(addr))
	}
	return x
}

func result(t *testing.T, c *call) *types100.Result {
	t.Helper()
	var r types100.Result
	if err := json.Unmarshal(c.stdout.Bytes(), &r); err != nil {
		t.Fatalf("the result %q: %v", c.stdout, err)
	}
	return &r
}

// reused has a peer whose table of neighbours says that an address is at a pod which is gone, and the next pod with it.
type reused struct {
	peer, next *lan.Host
	old        string
}

// reuse has a peer reach an address, and then gives the address to another pod.
func reuse(t *testing.T, peerAddr, addr, prefix string) reused {
	t.Helper()
	l := lan.New(t)
	r := reused{peer: l.Attached(t, peerAddr+prefix), next: l.Attached(t)}
	gone := l.Attached(t, addr+prefix)
	if err := lan.Reach(t, r.peer, gone, addr); err != nil {
		t.Fatalf("the first pod is not reached: %v", err)
	}
	r.old = gone.MAC(t, "eth0").String()
	gone.Down(t, "eth0")
	r.next.Address(t, "eth0", addr+prefix)
	return r
}

// TestAnnounce has a peer with a stale entry. It reaches the next pod with its first packet once the plugin has
// answered. The entry is the old one without: see the check before the call, and the migration.
func TestAnnounce(t *testing.T) {
	for name, c := range map[string]struct{ peer, addr, prefix string }{
		"IPv4": {"192.0.2.1", "192.0.2.7", "/24"},
		"IPv6": {"2001:db8::1", "2001:db8::7", "/64"},
	} {
		t.Run(name, func(t *testing.T) {
			r := reuse(t, c.peer, c.addr, c.prefix)
			if got := r.peer.Neighbour(t, c.addr).String(); got != r.old {
				t.Fatalf("without an announcement the peer has %s, want the old pod's %s", got, r.old)
			}
			x := newCall(t, r.next.Path(), config("", "", c.addr+c.prefix), attachment(c.addr))
			if err := x.plugin.add(x.args); err != nil {
				t.Fatal(err)
			}
			if got, want := r.peer.Neighbour(t, c.addr).String(), r.next.MAC(t, "eth0").String(); got != want {
				t.Errorf("the peer has %s, want the new pod's %s", got, want)
			}
			if err := lan.Reach(t, r.peer, r.next, c.addr); err != nil {
				t.Errorf("the peer does not reach the address: %v", err)
			}
		})
	}
}

// TestRepeated reads what a peer receives: the announcement, and each repetition after the answer.
func TestRepeated(t *testing.T) {
	for name, c := range map[string]struct {
		addr, prefix string
		protocol     int
		want         int // frames in all
	}{
		"IPv4": {"192.0.2.7", "/24", unix.ETH_P_ARP, 2 * (1 + len(pauses()))},
		"IPv6": {"2001:db8::7", "/64", unix.ETH_P_IPV6, 1 + len(pauses())},
	} {
		t.Run(name, func(t *testing.T) {
			l := lan.New(t)
			peer, pod := l.Attached(t), l.Attached(t, c.addr+c.prefix)
			var conn *packet.Conn
			peer.Do(t, func() error {
				i, err := net.InterfaceByName("eth0")
				if err == nil {
					conn, err = packet.Listen(i, packet.Datagram, c.protocol, nil)
				}
				return err
			})
			t.Cleanup(func() { _ = conn.Close() })
			x := newCall(t, pod.Path(), config("", "", c.addr+c.prefix), attachment(c.addr))
			if err := x.plugin.add(x.args); err != nil {
				t.Fatal(err)
			}
			if err := conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
				t.Fatal(err)
			}
			addr, frame := netip.MustParseAddr(c.addr).AsSlice(), make([]byte, 2048)
			for got := 0; got < c.want; {
				n, from, err := conn.ReadFrom(frame)
				if err != nil {
					t.Fatalf("%v after %d of %d frames", err, got, c.want)
				}
				if from.(*packet.Addr).HardwareAddr.String() == pod.MAC(t, "eth0").String() && bytes.Contains(frame[:n], addr) {
					got++
				}
			}
			if x.stderr.Len() > 0 {
				t.Errorf("the log has %q", x.stderr)
			}
		})
	}
}

// TestNotRepeated announces once where no process can be started: that is no reason to fail a pod.
func TestNotRepeated(t *testing.T) {
	r := reuse(t, "192.0.2.1", "192.0.2.7", "/24")
	x := newCall(t, r.next.Path(), config("", "", "192.0.2.7/24"), attachment("192.0.2.7"))
	x.plugin.Repeater = []string{filepath.Join(t.TempDir(), "nothing")}
	if err := x.plugin.add(x.args); err != nil {
		t.Fatal(err)
	}
	if got, want := r.peer.Neighbour(t, "192.0.2.7").String(), r.next.MAC(t, "eth0").String(); got != want {
		t.Errorf("the peer has %s, want the new pod's %s", got, want)
	}
	if !strings.Contains(x.stderr.String(), "announced only once") {
		t.Errorf("the log has %q", x.stderr)
	}
}

// TestManyPodsAtOnce has as many processes repeat as there may be: the next pod starts none, and its plugin repeats the
// announcement itself, once.
func TestManyPodsAtOnce(t *testing.T) {
	r := reuse(t, "192.0.2.1", "192.0.2.7", "/24")
	x := newCall(t, r.next.Path(), config("", "", "192.0.2.7/24"), attachment("192.0.2.7"))
	x.plugin.Repeater = []string{filepath.Join(t.TempDir(), "nothing")}
	for range maxRepeaters {
		place, err := takePlace(x.plugin.Places)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = place.Close() })
	}
	if err := x.plugin.add(x.args); err != nil {
		t.Fatal(err)
	}
	if got, want := r.peer.Neighbour(t, "192.0.2.7").String(), r.next.MAC(t, "eth0").String(); got != want {
		t.Errorf("the peer has %s, want the new pod's %s", got, want)
	}
	if x.stderr.Len() > 0 {
		t.Errorf("the log has %q", x.stderr)
	}
}

// TestPlaceOfAProcess: a process has its place until it ends, whatever becomes of the call that started it.
func TestPlaceOfAProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "places")
	for range maxRepeaters - 1 {
		place, err := takePlace(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = place.Close() })
	}
	place, err := takePlace(path)
	if err != nil {
		t.Fatal(err)
	}
	process := exec.Command("cat")
	process.ExtraFiles = []*os.File{place}
	end, err := process.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	_ = place.Close()
	if _, err := takePlace(path); !errors.Is(err, errNoPlace) {
		t.Errorf("while the process lives: %v", err)
	}
	_ = end.Close()
	if err := process.Wait(); err != nil {
		t.Fatal(err)
	}
	next, err := takePlace(path)
	if err != nil {
		t.Fatalf("after its end: %v", err)
	}
	_ = next.Close()
}

// TestMigration announces nothing: the pod at the source still has the address. Neither does it ask a gateway, which
// would write down who asks.
func TestMigration(t *testing.T) {
	for name, c := range map[string]struct{ peer, addr, prefix string }{
		"IPv4": {"192.0.2.1", "192.0.2.7", "/24"},
		"IPv6": {"2001:db8::1", "2001:db8::7", "/64"},
	} {
		t.Run(name, func(t *testing.T) {
			r := reuse(t, c.peer, c.addr, c.prefix)
			x := attachment(c.addr)
			x.Migration, x.MTU = true, 1400
			call := newCall(t, r.next.Path(), config(`,"checkGateway":true`, c.peer, c.addr+c.prefix), x)
			if err := call.plugin.add(call.args); err != nil {
				t.Fatal(err)
			}
			if got := r.peer.Neighbour(t, c.addr).String(); got != r.old {
				t.Errorf("the peer has %s, want what it had, %s", got, r.old)
			}
			if got := result(t, call).Interfaces[1].Mtu; got != 1400 {
				t.Errorf("the MTU is %d, want 1400", got)
			}
		})
	}
}

// TestSetUp sets MAC and MTU, corrects the result, and answers in each version of the specification.
func TestSetUp(t *testing.T) {
	for _, version := range []string{"0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"} {
		t.Run(version, func(t *testing.T) {
			l := lan.New(t)
			peer, pod := l.Attached(t, "192.0.2.1/24"), l.Attached(t, "192.0.2.7/24")
			x := attachment("192.0.2.7")
			x.MAC, x.MTU = "02:02:c0:00:02:07", 1400
			text := strings.ReplaceAll(config(`,"mac":true,"checkGateway":true`, "192.0.2.1", "192.0.2.7/24"), "1.1.0", version)
			if version < "1" {
				text = strings.ReplaceAll(text, `"interface":1,`, `"interface":1,"version":"4",`)
			}
			c := newCall(t, pod.Path(), text, x)
			if err := c.plugin.add(c.args); err != nil {
				t.Fatal(err)
			}
			a := pod.Link(t, "eth0").Attrs()
			if a.HardwareAddr.String() != x.MAC || a.MTU != x.MTU {
				t.Errorf("the link has MAC %s and MTU %d", a.HardwareAddr, a.MTU)
			}
			var got struct {
				CNIVersion string           `json:"cniVersion"`
				Interfaces []map[string]any `json:"interfaces"`
				IPs        []map[string]any `json:"ips"`
				DNS        map[string]any   `json:"dns"`
			}
			if err := json.Unmarshal(c.stdout.Bytes(), &got); err != nil {
				t.Fatal(err)
			}
			if got.CNIVersion != version || len(got.Interfaces) != 2 || got.Interfaces[1]["mac"] != x.MAC ||
				got.Interfaces[0]["mac"] != "02:00:00:00:00:99" || len(got.IPs) != 1 || got.IPs[0]["address"] != "192.0.2.7/24" ||
				got.DNS["domain"] != "pods.example" {
				t.Errorf("the result is %s", c.stdout)
			}
			if got := peer.Neighbour(t, "192.0.2.7").String(); got != x.MAC {
				t.Errorf("the gateway has %s for the pod, want %s", got, x.MAC)
			}
			if version < "0.4.0" {
				return // without CHECK
			}
			c.args.StdinData = []byte(strings.ReplaceAll(text, "02:00:00:00:00:98", x.MAC))
			if err := c.plugin.check(c.args); err != nil {
				t.Errorf("CHECK: %v", err)
			}
		})
	}
}

// TestSetUpMacvlan sets the MAC of a link that shares the node's.
func TestSetUpMacvlan(t *testing.T) {
	l := lan.New(t)
	node, peer := l.Attached(t), l.Attached(t, "192.0.2.1/24")
	pod := l.Host(t)
	pod.Macvlan(t, node, "eth0")
	pod.Up(t, "eth0")
	pod.Address(t, "eth0", "192.0.2.7/24")
	x := attachment("192.0.2.7")
	x.MAC, x.MTU = "02:02:c0:00:02:07", 1400
	c := newCall(t, pod.Path(), config(`,"mac":true`, "", "192.0.2.7/24"), x)
	if err := c.plugin.add(c.args); err != nil {
		t.Fatal(err)
	}
	if a := pod.Link(t, "eth0").Attrs(); a.HardwareAddr.String() != x.MAC || a.MTU != x.MTU {
		t.Errorf("the link has MAC %s and MTU %d", a.HardwareAddr, a.MTU)
	}
	if err := lan.Reach(t, peer, pod, "192.0.2.7"); err != nil {
		t.Errorf("the peer does not reach the pod: %v", err)
	}
	x.MTU = 9000
	c = newCall(t, pod.Path(), config("", "", "192.0.2.7/24"), x)
	if err := c.plugin.add(c.args); err == nil || !strings.Contains(err.Error(), "9000") || !strings.Contains(err.Error(), "macvlan") {
		t.Errorf("an MTU that the node's link does not have: %v", err)
	}
}

// TestNotAskedFor leaves MAC and MTU alone where nobody asks for them.
func TestNotAskedFor(t *testing.T) {
	l := lan.New(t)
	pod := l.Attached(t, "192.0.2.7/24")
	before := pod.Link(t, "eth0").Attrs()
	x := attachment("192.0.2.7")
	x.MAC = "02:02:c0:00:02:07"
	c := newCall(t, pod.Path(), config("", "", "192.0.2.7/24"), x)
	if err := c.plugin.add(c.args); err != nil {
		t.Fatal(err)
	}
	after := pod.Link(t, "eth0").Attrs()
	if after.HardwareAddr.String() != before.HardwareAddr.String() || after.MTU != before.MTU {
		t.Errorf("MAC and MTU were %s and %d, and are %s and %d", before.HardwareAddr, before.MTU, after.HardwareAddr, after.MTU)
	}
	if got := result(t, c).Interfaces[1].Mac; got != before.HardwareAddr.String() {
		t.Errorf("the result has the MAC %s, the link has %s", got, before.HardwareAddr)
	}
}

// TestGateway asks the gateway: it answers, is not there, or cannot be asked.
func TestGateway(t *testing.T) {
	const ask = `,"checkGateway":true`
	l := lan.New(t)
	l.Attached(t, "192.0.2.1/24", "2001:db8::1/64")
	alone := l.Host(t)
	alone.Isolated(t, "eth0")
	pod := l.Attached(t, "192.0.2.7/24", "2001:db8::7/64")
	for name, c := range map[string]struct {
		netNS, config, addr, want string
	}{
		"answers":         {pod.Path(), config(ask, "192.0.2.1", "192.0.2.7/24"), "192.0.2.7", ""},
		"answers, IPv6":   {pod.Path(), config(ask, "2001:db8::1", "2001:db8::7/64"), "2001:db8::7", ""},
		"there is none":   {pod.Path(), config(ask, "", "192.0.2.7/24"), "192.0.2.7", ""},
		"is silent":       {pod.Path(), config(ask, "192.0.2.2", "192.0.2.7/24"), "192.0.2.7", "nobody answers for the gateway 192.0.2.2 over eth0"},
		"is silent, IPv6": {pod.Path(), config(ask, "2001:db8::2", "2001:db8::7/64"), "2001:db8::7", "the gateway 2001:db8::2"},
		"is not asked":    {pod.Path(), config("", "192.0.2.2", "192.0.2.7/24"), "192.0.2.7", ""},
		"no carrier":      {alone.Path(), config(ask, "192.0.2.1", "192.0.2.7/24"), "192.0.2.7", "the gateway cannot be asked; the link has no carrier"},
	} {
		t.Run(name, func(t *testing.T) {
			x := newCall(t, c.netNS, c.config, attachment(c.addr))
			err := x.plugin.add(x.args)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("ADD: %v, want %q", err, c.want)
			}
			if (err == nil) != (x.stdout.Len() > 0) {
				t.Errorf("error %v with the result %q", err, x.stdout)
			}
		})
	}
	x := newCall(t, alone.Path(), config("", "192.0.2.1", "192.0.2.7/24"), attachment("192.0.2.7"))
	if err := x.plugin.add(x.args); err != nil || !strings.Contains(x.stderr.String(), "no carrier") {
		t.Errorf("without a carrier and without the question: %v, %q", err, x.stderr)
	}
}

// TestCheck finds what an interface has lost.
func TestCheck(t *testing.T) {
	l := lan.New(t)
	pod := l.Attached(t, "192.0.2.7/24", "2001:db8::7/64")
	text := strings.ReplaceAll(config(`,"mac":true`, "", "192.0.2.7/24", "2001:db8::7/64"), "02:00:00:00:00:98",
		pod.MAC(t, "eth0").String())
	for name, c := range map[string]struct {
		config string
		file   *attach.Attachment
		want   []string
	}{
		"all as it was":        {text, attachment("192.0.2.7", "2001:db8::7"), nil},
		"without the file":     {text, nil, nil},
		"an address is gone":   {strings.Replace(text, "192.0.2.7", "192.0.2.8", 1), nil, []string{"192.0.2.8 is missing"}},
		"another MAC":          {config("", "", "192.0.2.7/24"), nil, []string{"the MAC is", "not 02:00:00:00:00:98"}},
		"a later plugin's MAC": {text, &attach.Attachment{MAC: "02:02:c0:00:02:07", Addrs: attachment("192.0.2.7").Addrs}, nil},
		"a later plugin's MTU": {strings.Replace(text, `"sandbox"`, `"mtu":1300,"sandbox"`, 1), &attach.Attachment{MTU: 1300, Addrs: attachment("192.0.2.7").Addrs}, nil},
		"all at once":          {config("", "", "192.0.2.8/24"), nil, []string{"192.0.2.8 is missing", "not 02:00:00:00:00:98"}},
		"an address of others": {text, attachment("198.51.100.1"), []string{"lacks 198.51.100.1"}},
	} {
		t.Run(name, func(t *testing.T) {
			x := newCall(t, pod.Path(), c.config, c.file)
			err := x.plugin.check(x.args)
			if c.want == nil && err != nil {
				t.Errorf("CHECK: %v", err)
			}
			for _, want := range c.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("CHECK: %v, want %q", err, want)
				}
			}
			if x.stdout.Len() > 0 {
				t.Errorf("CHECK prints %q", x.stdout)
			}
		})
	}
}

// TestBadInput has what an ADD can be given wrong. The sentences are what the pod's event shows.
func TestBadInput(t *testing.T) {
	l := lan.New(t)
	pod := l.Attached(t, "192.0.2.7/24")
	right := config("", "", "192.0.2.7/24")
	damaged := func(c *call) {
		if err := os.WriteFile(filepath.Join(c.plugin.Attachments.Dir, id+":eth0.json"), []byte(`{"containerID`), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		config string
		change func(*call)
		want   string
	}{
		"no configuration":            {"", nil, "cannot be read"},
		"mac is no bool":              {strings.Replace(right, `"name"`, `"mac":"yes","name"`, 1), nil, "Config.mac"},
		"checkGateway is no bool":     {strings.Replace(right, `"name"`, `"checkGateway":1,"name"`, 1), nil, "Config.checkGateway"},
		"no prevResult":               {`{"cniVersion":"1.1.0","name":"lan","type":"bcsnet-announce"}`, nil, "no prevResult"},
		"prevResult of no form":       {`{"cniVersion":"1.1.0","name":"lan","prevResult":{"ips":7}}`, nil, "cannot read the prevResult"},
		"prevResult of no version":    {strings.Replace(right, `"cniVersion":"1.1.0","name"`, `"cniVersion":"7.0.0","name"`, 1), nil, "cannot read the prevResult"},
		"prevResult is empty":         {`{"cniVersion":"1.1.0","name":"lan","prevResult":{}}`, nil, "no interface eth0"},
		"prevResult of another":       {strings.ReplaceAll(right, `"eth0"`, `"net1"`), nil, "no interface eth0 of the container"},
		"prevResult of the host":      {strings.ReplaceAll(right, `,"sandbox":"/run/netns/x"`, ""), nil, "no interface eth0 of the container"},
		"prevResult without an IP":    {config("", ""), nil, "no address for eth0"},
		"IPs of another interface":    {strings.ReplaceAll(right, `"interface":1`, `"interface":0`), nil, "no address for eth0"},
		"IPs of no interface":         {strings.ReplaceAll(right, `"interface":1`, `"interface":7`), nil, "no address for eth0"},
		"the allocator's is not here": {config("", "", "192.0.2.8/24"), nil, "lacks 192.0.2.7"},
		"no file":                     {right, func(c *call) { _ = c.plugin.Attachments.Remove(id, "eth0") }, "goes after a plugin whose ipam is bcsnet-ipam"},
		"a damaged file":              {right, damaged, "eth0.json is damaged"},
		"a container ID that is none": {right, func(c *call) { c.args.ContainerID = "../x" }, "../x"},
		"no namespace":                {right, func(c *call) { c.args.Netns = "" }, "no network namespace"},
		"the namespace is gone":       {right, func(c *call) { c.args.Netns = "/proc/1/fd/9999" }, "no network namespace at /proc/1/fd/9999"},
		"a namespace that is none":    {right, func(c *call) { c.args.Netns = "/etc/hostname" }, "/etc/hostname"},
	} {
		t.Run(name, func(t *testing.T) {
			x := newCall(t, pod.Path(), c.config, attachment("192.0.2.7"))
			if c.change != nil {
				c.change(x)
			}
			if err := x.plugin.add(x.args); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("ADD: %v, want %q", err, c.want)
			}
			if x.stdout.Len() > 0 {
				t.Errorf("ADD failed and prints %q", x.stdout)
			}
		})
	}
	empty := l.Host(t)
	x := newCall(t, empty.Path(), right, attachment("192.0.2.7"))
	if err := x.plugin.add(x.args); err == nil || !strings.Contains(err.Error(), "no such interface: eth0") {
		t.Errorf("a namespace without the interface: %v", err)
	}
}
