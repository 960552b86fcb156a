package ipam

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/containernetworking/cni/pkg/types"

	"github.com/bcsnet/bcsnet/pkg/cni/probe"
)

// TestContest reports an address whose duplicate address detection failed, as a probe would, and releases nothing: the
// interface already has the container's other addresses.
func TestContest(t *testing.T) {
	addr := netip.MustParseAddr("2001:db8::7")
	hw, err := net.ParseMAC(mac)
	if err != nil {
		t.Fatal(err)
	}
	answers := mac + " answers for 2001:db8::7 (AddressConflict)"
	for name, c := range map[string]struct {
		conflict, want, outcome string
		found                   []probe.Answer
		conflicts               int32
	}{
		"somebody answers": {
			`"code":0,"result":true,"data":{"ipAddr":"2001:db8::7","pool":"a","mac":"` + mac + `","quarantined":true}`,
			answers, "conflict", []probe.Answer{{Addr: addr, MAC: hw}}, 1,
		},
		"the brake holds": {
			`"code":0,"result":true,"data":{"ipAddr":"2001:db8::7","pool":"a","mac":"` + mac + `","quarantined":false}`,
			answers + "; hint: this looks like proxy ARP", "conflict", []probe.Answer{{Addr: addr, MAC: hw}}, 1,
		},
		"kept by a claim": {
			`"code":2,"result":false,"data":null,"message":"claim sts-db keeps it","hint":"look","reason":"AddressConflict"`,
			"claim sts-db keeps it (AddressConflict); hint: look", "conflict", []probe.Answer{{Addr: addr, MAC: hw}}, 1,
		},
		"nobody answers": {"", "nobody answers for [2001:db8::7] any more; hint: ", "failed", nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &script{conflict: c.conflict}
			server := httptest.NewServer(s)
			defer server.Close()
			dir := t.TempDir()
			var out, log bytes.Buffer
			p := onNode(t, dir, &out, &log, server.URL)
			p.Probe = func(context.Context, probe.Request) ([]probe.Answer, error) { return c.found, nil }
			err := p.Contest(t.Context(), ofContainer([]byte(`{"cniVersion":"1.1.0","name":"lan","type":"bcsnet-announce"}`)),
				[]netip.Addr{addr})
			coded, ok := errors.AsType[*types.Error](err)
			if !ok || coded.Code != types.ErrTryAgainLater || !strings.Contains(coded.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
			if got := s.conflicts.Load(); got != c.conflicts || s.adds.Load()+s.dels.Load() > 0 {
				t.Errorf("%d reports, want %d; %d ADDs and %d DELs", got, c.conflicts, s.adds.Load(), s.dels.Load())
			}
			text, err := os.ReadFile(dir + "/r/calls.log")
			if err != nil || !bytes.Contains(text, []byte(`"outcome":"`+c.outcome+`"`)) || out.Len() > 0 {
				t.Errorf("calls.log: %s, %v; the result %q", text, err, &out)
			}
		})
	}
}
