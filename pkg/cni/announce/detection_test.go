package announce

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/bcsnet/bcsnet/pkg/cni/link"
	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/lan"
)

// detected gives eth0 of a host an IPv6 address with duplicate address detection, and returns at once.
func detected(t *testing.T, h *lan.Host, addr string) {
	t.Helper()
	h.Do(t, func() error {
		l, err := netlink.LinkByName("eth0")
		if err != nil {
			return err
		}
		a, err := netlink.ParseAddr(addr + "/64")
		if err != nil {
			return err
		}
		return netlink.AddrAdd(l, a)
	})
}

// flags returns the IFA_F_ flags of an address on eth0 of a host.
func flags(t *testing.T, h *lan.Host, addr string) (got int) {
	t.Helper()
	h.Do(t, func() error {
		l, err := netlink.LinkByName("eth0")
		if err != nil {
			return err
		}
		on, err := flagsOn(l)
		got = on[netip.MustParseAddr(addr)]
		return err
	})
	return got
}

// TestDuplicate gives a pod an address that another host has. Linux finds that out. ADD must not announce the address,
// whether the detection ends before the call or during it, and CHECK must find it.
func TestDuplicate(t *testing.T) {
	const addr = "2001:db8::7"
	for name, ended := range map[string]bool{"before the ADD": true, "during the ADD": false} {
		t.Run(name, func(t *testing.T) {
			l := lan.New(t)
			peer, holder, pod := l.Attached(t, "2001:db8::1/64"), l.Attached(t, addr+"/64"), l.Attached(t)
			if err := lan.Reach(t, peer, holder, addr); err != nil {
				t.Fatal(err)
			}
			detected(t, pod, addr)
			if ended {
				controlplane.Until(t, "the detection fails", func() bool {
					return flags(t, pod, addr)&unix.IFA_F_DADFAILED != 0
				})
			}
			text := config("", "", addr+"/64", "192.0.2.7/24")
			pod.Address(t, "eth0", "192.0.2.7/24")
			c := newCall(t, pod.Path(), text, attachment(addr))
			var contested []netip.Addr
			c.plugin.Contest = func(_ context.Context, args *skel.CmdArgs, addrs []netip.Addr) error {
				if contested = addrs; args != c.args {
					t.Errorf("%v is contested for %+v", addrs, args)
				}
				return errors.New("02:00:5e:10:00:01 answers for it")
			}
			err := c.plugin.add(c.args)
			if want := []netip.Addr{netip.MustParseAddr(addr)}; !slices.Equal(contested, want) {
				t.Errorf("%v is contested, want %v", contested, want)
			}
			var coded *types.Error
			if !errors.As(err, &coded) || coded.Code != types.ErrTryAgainLater || coded.Error() != "2001:db8::7 cannot be used on "+
				"eth0: duplicate address detection found another machine with it; 02:00:5e:10:00:01 answers for it" {
				t.Errorf("ADD: %v", err)
			}
			if c.stdout.Len() > 0 {
				t.Errorf("ADD failed and prints %q", c.stdout)
			}
			if got, want := peer.Neighbour(t, addr).String(), holder.MAC(t, "eth0").String(); got != want {
				t.Errorf("the peer has %s for the address, want the holder's %s", got, want)
			}
			if err := lan.Reach(t, peer, holder, addr); err != nil {
				t.Errorf("the peer no longer reaches the holder: %v", err)
			}
			text = strings.ReplaceAll(text, "02:00:00:00:00:98", pod.MAC(t, "eth0").String())
			c = newCall(t, pod.Path(), text, attachment(addr))
			if err := c.plugin.check(c.args); err == nil || !strings.Contains(err.Error(), "another machine has 2001:db8::7") {
				t.Errorf("CHECK: %v", err)
			}
			x := attachment(addr)
			x.Migration = true
			c = newCall(t, pod.Path(), text, x)
			if err := c.plugin.add(c.args); err != nil {
				t.Errorf("ADD of a migration: %v", err)
			}
			if err := c.plugin.check(c.args); err != nil {
				t.Errorf("CHECK of a migration: %v", err)
			}
		})
	}
}

// TestUnique has an address whose detection goes on: ADD announces it when the detection has ended.
func TestUnique(t *testing.T) {
	const addr = "2001:db8::7"
	l := lan.New(t)
	pod := l.Attached(t)
	detected(t, pod, addr)
	c := newCall(t, pod.Path(), config("", "", addr+"/64"), attachment(addr))
	if err := c.plugin.add(c.args); err != nil {
		t.Fatal(err)
	}
	if got := flags(t, pod, addr); got&unix.IFA_F_TENTATIVE != 0 {
		t.Errorf("ADD returned with the flags %x", got)
	}
	if c.stderr.Len() > 0 {
		t.Errorf("the log has %q", c.stderr)
	}
}

// TestTentative has an address whose detection takes longer than an ADD waits: nothing is announced.
func TestTentative(t *testing.T) {
	const addr = "2001:db8::7"
	l := lan.New(t)
	peer, gone, pod := l.Attached(t, "2001:db8::1/64"), l.Attached(t, addr+"/64"), l.Attached(t)
	if err := lan.Reach(t, peer, gone, addr); err != nil {
		t.Fatal(err)
	}
	old := gone.MAC(t, "eth0").String()
	gone.Down(t, "eth0")
	pod.Do(t, func() error {
		return os.WriteFile("/proc/sys/net/ipv6/conf/eth0/dad_transmits", []byte("600"), 0)
	})
	detected(t, pod, addr)
	for name, want := range map[string]string{"": "", `,"checkGateway":true`: "the gateway cannot be asked"} {
		c := newCall(t, pod.Path(), config(name, "2001:db8::1", addr+"/64"), attachment(addr))
		conf, err := decode(c.args.StdinData)
		if err != nil {
			t.Fatal(err)
		}
		have, err := conf.attached("eth0")
		if err != nil {
			t.Fatal(err)
		}
		over, end := context.WithCancel(t.Context())
		end()
		err = link.In(pod.Path(), "eth0", func(l netlink.Link) error { return c.plugin.announce(over, conf, l, have) })
		switch {
		case want == "" && (err != nil || !strings.Contains(c.stderr.String(), "duplicate address detection has not ended")):
			t.Errorf("%v, and the log has %q", err, c.stderr)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%v, want %q", err, want)
		}
	}
	if got := peer.Neighbour(t, addr).String(); got != old {
		t.Errorf("the peer has %s, want what it had, %s", got, old)
	}
}
