package cni_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/containernetworking/cni/pkg/skel"

	"github.com/bcsnet/bcsnet/pkg/cni/ipam"
)

// TestBadInput has ADDs with configurations and variables that cannot be: an error of CNI's with its code and a
// sentence, and nothing is taken.
func TestBadInput(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.pool("", nil, 20)
	pod := n.container("web")
	own := func(field string) string { return strings.Replace(direct, `"ipam":{`, `"ipam":{`+field+`,`, 1) }
	for name, c := range map[string]struct {
		stdin string
		env   []string
		words []string
	}{
		"unknown version":   {strings.Replace(direct, "1.1.0", "7.0.0", 1), nil, []string{`"code": 1`, "incompatible CNI versions"}},
		"too old a version": {strings.Replace(direct, "1.1.0", "0.0.9", 1), nil, []string{`"code": 1`}},
		"no name":           {`{"cniVersion":"1.1.0","ipam":{"type":"bcsnet-ipam"}}`, nil, []string{`"code": 7`, "name"}},
		"the type alone":    {`{"type":"bcsnet-ipam"}`, nil, []string{`"code": 7`, "name"}},
		"not JSON":          {direct[:30], nil, []string{`"code": 6`}},
		"nothing":           {"", nil, []string{`"code": 6`}},
		"host":              {own(`"host":"node-1"`), nil, []string{`"code": 7`, "the network configuration is wrong", "ipam.host"}},
		"endpoint":          {own(`"netserviceEndpoint":"ftp://x"`), nil, []string{`"code": 7`, "ipam.netserviceEndpoint[0]"}},
		"range":             {own(`"range":"10.1.0.0/24"`), nil, []string{`"code": 7`, "ipam.range", "availableIPs"}},
		"networks":          {own(`"networks":"storage"`), nil, []string{`"code": 7`, "ipam.networks", "is meant"}},
		"several":           {own(`"probe":1,"routes":7`), nil, []string{`"code": 7`, "ipam.probe", "ipam.routes"}},
		"no CNI_NETNS":      {direct, []string{"CNI_NETNS="}, []string{`"code": 4`, "CNI_NETNS"}},
		"no CNI_IFNAME":     {direct, []string{"CNI_IFNAME="}, []string{`"code": 4`, "CNI_IFNAME"}},
		"a long CNI_IFNAME": {direct, []string{"CNI_IFNAME=" + strings.Repeat("x", 16)}, []string{`"code": 4`}},
		"no CNI_CONTAINER":  {direct, []string{"CNI_CONTAINERID="}, []string{`"code": 4`, "CNI_CONTAINERID"}},
		"an ID that is a path": {
			direct, []string{"CNI_CONTAINERID=../../x"}, []string{`"code": 4`},
		},
		"no pod":           {direct, []string{"CNI_ARGS="}, []string{`"code": 4`, "CNI_ARGS names no pod"}},
		"unknown CNI_ARGS": {direct, []string{"CNI_ARGS=COLOR=red"}, []string{`"code": 4`, "COLOR"}},
		"an unknown pod": {
			direct, []string{"CNI_ARGS=IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=none"},
			[]string{`"code": 11`, "(PodNotFound)"},
		},
		"a pod of another UID": {
			direct, []string{"CNI_ARGS=IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=" + pod.pod + ";K8S_POD_UID=other"},
			[]string{`"code": 100`, "(PodReplaced)"},
		},
		"a network of no pool": {own(`"network":"none"`), nil, []string{`"code": 100`, "(NetworkNotFound)", "none"}},
		"another host":         {own(`"host":"10.250.250.250"`), nil, []string{`"code": 100`, "(NotPermitted)", "10.250.250.250"}},
	} {
		t.Run(name, func(t *testing.T) {
			n := n.on(t)
			_, err := pod.call("ADD", c.stdin, c.env...)
			n.wantError(err, c.words...)
			n.wantFree(n.addr(20))
		})
	}
	t.Run("unknown command", func(t *testing.T) {
		_, err := pod.call("PLUG", direct)
		n.on(t).wantError(err, `"code": 4`, "PLUG")
	})
	t.Run("VERSION", func(t *testing.T) {
		out, err := pod.call("VERSION", `{"cniVersion":"1.1.0"}`)
		for _, v := range []string{"0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"} {
			if err != nil || !strings.Contains(out, `"`+v+`"`) {
				t.Errorf("%q lacks %s: %v", out, v, err)
			}
		}
	})
}

// TestClocks has nodes whose clocks are hours off, and are set right between ADD and DEL.
func TestClocks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ atADD, atDEL time.Duration }{
		"hours ahead":         {3 * time.Hour, 3 * time.Hour},
		"hours behind":        {-3 * time.Hour, -3 * time.Hour},
		"ahead, then right":   {3 * time.Hour, 0},
		"behind, then right":  {-3 * time.Hour, 0},
		"right, then ahead":   {0, 3 * time.Hour},
		"right, then behind":  {0, -3 * time.Hour},
		"a minute set back":   {0, -time.Minute},
		"four minutes behind": {0, -4 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t)
			n.pool("", nil, 20)
			pod := n.container("web")
			args := &skel.CmdArgs{
				ContainerID: pod.id, IfName: "eth0", Netns: pod.netns.Path(),
				Args:      fmt.Sprintf("K8S_POD_NAMESPACE=default;K8S_POD_NAME=%s;K8S_POD_UID=%s;IgnoreUnknown=1", pod.pod, pod.uid),
				StdinData: []byte(direct),
			}
			n.write("etc/ca.crt", shared.ca)
			n.configure("cluster", "c1", "host", n.Host, "replicas", []string{n.secureURL()}, "serverName",
				"bcsnet-controller.bcsnet-system.svc", "dataDir", n.dir+"/var", "runDir", n.dir+"/run")
			at := func(off time.Duration) *ipam.Plugin {
				p := ipam.New(&bytes.Buffer{}, &bytes.Buffer{})
				p.ConfigDir = filepath.Join(n.dir, "etc")
				p.Now = func() time.Time { return time.Now().Add(off) }
				return p
			}
			if err := at(c.atADD).Funcs().Add(args); err != nil {
				t.Fatal(err)
			}
			n.wantHeld(pod.id, n.addr(20))
			if err := at(c.atDEL).Funcs().Del(args); err != nil {
				t.Fatal(err)
			}
			if slices.Contains(n.held(pod.id), n.addr(20)) { // counted two seconds after its arrival: a later call delivers
				if c.atADD <= 0 {
					t.Errorf("a DEL after the ADD freed nothing")
				}
				other := *args
				other.ContainerID = "other"
				plugin := at(0)
				n.eventually(func() bool {
					_ = plugin.Funcs().Del(&other)
					return len(n.held(pod.id)) == 0
				})
			}
			n.wantFree(n.addr(20))
		})
	}
}

// TestClockSetBack: between two containers of a pod the node's clock is set back by minutes, as by NTP on any day. The
// second container gets the pod's address at once, and its DEL frees it.
func TestClockSetBack(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.pool("", nil, 20)
	pod := n.container("web")
	args := &skel.CmdArgs{
		ContainerID: pod.id, IfName: "eth0", Netns: pod.netns.Path(),
		Args:      fmt.Sprintf("K8S_POD_NAMESPACE=default;K8S_POD_NAME=%s;K8S_POD_UID=%s;IgnoreUnknown=1", pod.pod, pod.uid),
		StdinData: []byte(direct),
	}
	n.write("etc/ca.crt", shared.ca)
	n.configure("cluster", "c1", "host", n.Host, "replicas", []string{n.secureURL()}, "serverName",
		"bcsnet-controller.bcsnet-system.svc", "dataDir", n.dir+"/var", "runDir", n.dir+"/run")
	at := func(off time.Duration) *ipam.Plugin {
		p := ipam.New(&bytes.Buffer{}, &bytes.Buffer{})
		p.ConfigDir = filepath.Join(n.dir, "etc")
		p.Now = func() time.Time { return time.Now().Add(off) }
		return p
	}
	if err := at(0).Funcs().Add(args); err != nil {
		t.Fatal(err)
	}
	for i, off := range []time.Duration{-4 * time.Minute, -time.Second, -4*time.Minute - 30*time.Second} {
		next := *args
		next.ContainerID = fmt.Sprintf("%s-%d", pod.id, i)
		if err := at(off).Funcs().Add(&next); err != nil {
			t.Fatalf("the next container, clock set back by %s: %v", -off, err)
		}
		n.wantHeld(next.ContainerID, n.addr(20))
		args = &next
	}
	if err := at(-4 * time.Minute).Funcs().Del(args); err != nil {
		t.Fatal(err)
	}
	n.wantFree(n.addr(20))
}
