package ipam

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
	"go.uber.org/goleak"

	"github.com/bcsnet/bcsnet/pkg/cni/probe"
	"github.com/bcsnet/bcsnet/pkg/httpapi/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// script is an allocator that says what a test wants: the answers that the real one has in trouble that cannot be made
// at will.
type script struct {
	migration bool
	// few: there is one address, and no other.
	few bool
	// conflict is the envelope of a conflict's report, but for the request's ID.
	conflict string
	// asked counts requests by method and the end of the path.
	adds, dels, conflicts atomic.Int32
}

func (s *script) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	id := q.Header.Get("X-Request-Id")
	switch {
	case strings.HasSuffix(q.URL.Path, "/conflict"):
		s.conflicts.Add(1)
		fmt.Fprintf(w, `{"request_id":%q,%s}`, id, s.conflict)
	case q.Method == http.MethodPost:
		n := s.adds.Add(1)
		if s.few && n > 1 {
			fmt.Fprintf(w, `{"code":2,"result":false,"data":null,"message":"full","reason":"HostNotInPool","request_id":%q}`, id)
			return
		}
		data := answered(func(a *wire.Allocation) {
			a.Migration = s.migration
			a.IPs = []wire.Address{{IPAddr: fmt.Sprintf("10.0.0.%d", 20+n), Mask: 24}}
		})
		fmt.Fprintf(w, `{"code":0,"result":true,"request_id":%q,"data":%s}`, id, data)
	default:
		s.dels.Add(1)
		fmt.Fprintf(w, `{"code":0,"result":true,"request_id":%q,"data":{"containerID":"3f4e","ips":[]}}`, id)
	}
}

// add sends an ADD to a script, with a network that has somebody answer for addresses: with one MAC, or several.
func (s *script) add(t *testing.T, found func(netip.Addr) (macs string, err error)) (result string, notes string, err error) {
	t.Helper()
	server := httptest.NewServer(s)
	defer server.Close()
	dir := t.TempDir()
	var out, log bytes.Buffer
	p := onNode(t, dir, &out, &log, server.URL)
	p.Probe = func(_ context.Context, r probe.Request) (answers []probe.Answer, err error) {
		for _, addr := range r.Addrs {
			macs, err := found(addr)
			if err != nil {
				return nil, err
			}
			for mac := range strings.FieldsSeq(macs) {
				hw, err := net.ParseMAC(mac)
				if err != nil {
					return nil, err
				}
				answers = append(answers, probe.Answer{Addr: addr, MAC: hw})
			}
		}
		return answers, nil
	}
	err = p.Funcs().Add(&skel.CmdArgs{
		ContainerID: "3f4e", IfName: "eth0", Netns: "/proc/self/ns/net", Args: "K8S_POD_NAMESPACE=shop;K8S_POD_NAME=web-0",
		StdinData: configured(`,"probe":true`),
	})
	return out.String(), log.String(), err
}

const mac = "02:00:5e:10:00:01"

func everybody(netip.Addr) (string, error) { return mac, nil }

// onceAnd answers the first question alone. The others end with an error, or nobody answers.
func onceAnd(err error) func(netip.Addr) (string, error) {
	asked := 0
	return func(netip.Addr) (string, error) {
		if asked++; asked == 1 {
			return mac, nil
		}
		return "", err
	}
}

// TestTake has networks where somebody answers, and what the allocator says to the report.
func TestTake(t *testing.T) {
	quarantined := func(addr string) string {
		return fmt.Sprintf(`"code":0,"result":true,"data":{"ipAddr":%q,"pool":"a","mac":%q,"quarantined":true}`, addr, mac)
	}
	for name, c := range map[string]struct {
		script                *script
		found                 func(netip.Addr) (string, error)
		want, note            string
		words                 []string
		adds, dels, conflicts int32
	}{
		"nobody":  {&script{}, func(netip.Addr) (string, error) { return "", nil }, "10.0.0.21/24", "", nil, 1, 0, 0},
		"no link": {&script{}, func(netip.Addr) (string, error) { return "", probe.ErrNoLink }, "10.0.0.21/24", "", nil, 1, 0, 0},
		"a probe that fails": {
			&script{}, func(netip.Addr) (string, error) { return "", errors.New("EPERM") }, "10.0.0.21/24", "EPERM", nil, 1, 0, 0,
		},
		"a machine that migrates": {&script{migration: true}, everybody, "10.0.0.21/24", "", nil, 1, 0, 0},
		"one is taken": {
			&script{conflict: quarantined("10.0.0.21")}, func(a netip.Addr) (string, error) {
				if a == netip.MustParseAddr("10.0.0.21") {
					return mac, nil
				}
				return "", nil
			}, "10.0.0.22/24", "", nil, 2, 0, 1,
		},
		"there is no other": { // of two families, one may be held
			&script{few: true, conflict: quarantined("10.0.0.21")}, everybody, "", mac + " answers for 10.0.0.21",
			[]string{"full (HostNotInPool)"}, 2, 1, 1,
		},
		"by two": {
			&script{conflict: quarantined("10.0.0.21")}, func(a netip.Addr) (string, error) {
				if a == netip.MustParseAddr("10.0.0.21") {
					return mac + " 02:00:5e:10:00:02", nil
				}
				return "", nil
			}, "10.0.0.22/24", "", nil, 2, 0, 1,
		},
		"by a pod that is ending": {&script{}, onceAnd(nil), "10.0.0.21/24", "", nil, 1, 0, 0},
		"by somebody who cannot be asked again": {
			&script{conflict: quarantined("10.0.0.21")}, onceAnd(probe.ErrNoLink), "10.0.0.22/24", "", nil, 2, 0, 1,
		},
		"the brake holds": {
			&script{conflict: strings.Replace(quarantined("10.0.0.21"), "true}", "false}", 1)}, everybody, "", "",
			[]string{mac + " answers for 10.0.0.21", "proxy ARP"}, 1, 1, 1,
		},
		"too many reports": {
			&script{conflict: `"code":2,"result":false,"data":null,"message":"enough","reason":"TooManyConflicts"`}, everybody, "", "",
			[]string{mac + " answers for 10.0.0.21", "proxy ARP"}, 1, 1, 1,
		},
		"kept by a claim": {
			&script{conflict: `"code":2,"result":false,"data":null,"message":"claim sts-db keeps it","hint":"look","reason":"AddressConflict"`},
			everybody, "", "", []string{"claim sts-db keeps it (AddressConflict)", "hint: look"}, 1, 0, 1,
		},
		"the report may not be made": {
			&script{conflict: `"code":2,"result":false,"data":null,"message":"no","reason":"Forbidden"`}, everybody, "", "could not be reported: no",
			[]string{mac + " answers for 10.0.0.21"}, 1, 1, 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, notes, err := c.script.add(t, c.found)
			if c.words == nil && (err != nil || !strings.Contains(out, c.want)) {
				t.Errorf("%s, %v", out, err)
			}
			code := types.ErrTryAgainLater
			if c.script.few {
				code = codeRefused
			}
			for _, word := range c.words {
				if coded, ok := errors.AsType[*types.Error](err); !ok || coded.Code != code || !strings.Contains(coded.Error(), word) {
					t.Errorf("%v, want %q", err, word)
				}
			}
			if !strings.Contains(notes, c.note) || c.note == "" && notes != "" {
				t.Errorf("notes %q, want %q", notes, c.note)
			}
			got := []int32{c.script.adds.Load(), c.script.dels.Load(), c.script.conflicts.Load()}
			if want := []int32{c.adds, c.dels, c.conflicts}; !slices.Equal(got, want) {
				t.Errorf("ADDs, DELs and reports %v, want %v", got, want)
			}
		})
	}
}
