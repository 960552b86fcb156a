package check

import (
	"bytes"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/nodecheck"
)

// checked are nodes as a check finds them: one that is well, one without a pod, one with trouble in one family, and one
// whose pod could ask nobody for duplicates.
func checked() []nodecheck.Node {
	blue := func(last string) []nodecheck.Address {
		return []nodecheck.Address{{
			Addr: netip.MustParseAddr("10.0.0." + last), Pool: "blue", Gateway: netip.MustParseAddr("10.0.0.254"),
		}}
	}
	peers := []nodecheck.Peer{
		{Name: "pod-1", Addrs: []netip.Addr{netip.MustParseAddr("10.0.0.1")}},
		{Name: "pod-4", Addrs: []netip.Addr{netip.MustParseAddr("10.0.0.4")}},
	}
	released := nodecheck.Release{Asked: true}
	return []nodecheck.Node{
		{
			Name: "n1", Pod: "pod-1", Addrs: blue("1"), ReadyIn: 1540 * time.Millisecond, Release: released,
			Plan: nodecheck.Plan{Peers: peers}, Report: &nodecheck.Report{Links: []nodecheck.Link{{Gateway: true, GatewayMAC: "02:00:00:00:00:fe"}}},
		},
		{
			Name: "n2", Pod: "pod-2", Release: released, Failure: &nodecheck.Finding{
				Check: nodecheck.CheckAddress, Node: "n2", Cause: "no \x1b[2Jaddress", Fix: "bcsnetctl pool add-host blue 10.9.0.2",
			},
		},
		{
			Name: "n3", Pod: "pod-3", ReadyIn: time.Minute, Release: nodecheck.Release{Asked: true, Left: true, Within: 45 * time.Second},
			Addrs: append(blue("3"), nodecheck.Address{Addr: netip.MustParseAddr("2001:db8::3"), Pool: "blue6"}),
			Plan:  nodecheck.Plan{Peers: peers},
			Report: &nodecheck.Report{
				Lost:  []nodecheck.Lost{{Why: "no route to host"}},
				Links: []nodecheck.Link{{GatewayWhy: "no answer", Others: []string{"02:00:00:00:00:01"}}, {}},
			},
		},
		{
			Name: "n4", Pod: "pod-4", Addrs: blue("4"), ReadyIn: time.Second, Release: released,
			Report: &nodecheck.Report{Links: []nodecheck.Link{{Gateway: true, Unasked: "it lacks NET_RAW"}}},
		},
		{
			Name: "n5", Failure: &nodecheck.Finding{Check: nodecheck.CheckNode, Node: "n5", Cause: "the node is not Ready", Fix: "see why"},
		},
	}
}

const tables = `NODE  ADDRESS               POOL        READY IN  PEERS  GATEWAY      DUPLICATES  RELEASED
n1    10.0.0.1              blue        1.5s      2/2    answers      0           yes
n2    -                     -           -         -      -            -           -
n3    10.0.0.3,2001:db8::3  blue,blue6  60.0s     1/2    silent,none  1,0         no
n4    10.0.0.4              blue        1.0s      0/0    answers      not asked   yes
n5    -                     -           -         -      -            -           -

x n2: address: no \u001b[2Jaddress
    fix: kubectl bcsnet pool add-host blue 10.9.0.2
x n3: gateway: the gateway 10.0.0.254 of pool blue does not answer on the link of 10.0.0.3: no answer
    fix: see that the gateway of pool blue is right (kubectl bcsnet pool describe blue), and that the port of the switch carries the pool's VLAN to it
x n3: duplicate: somebody else answers for 10.0.0.3 of pool blue: 02:00:00:00:00:01
    fix: find who has it by the MAC, and set the address aside meanwhile: kubectl bcsnet ip reserve 10.0.0.3
x n3: release: the pod pod-3 was deleted and is still there after 45s
    fix: see whether the kubelet of the node runs: the pod ends once it does
x n5: node: the node is not Ready
    fix: see why
`

const wide = `NODE  ADDRESS               POOL        READY IN  PEERS  GATEWAY      GATEWAY MAC        DUPLICATES  RELEASED  POD
n1    10.0.0.1              blue        1.5s      2/2    answers      02:00:00:00:00:fe  0           yes       pod-1
n2    -                     -           -         -      -            -                  -           -         pod-2
n3    10.0.0.3,2001:db8::3  blue,blue6  60.0s     1/2    silent,none  -                  1,0         no        pod-3
n4    10.0.0.4              blue        1.0s      0/0    answers      -                  not asked   yes       pod-4
n5    -                     -           -         -      -            -                  -           -         -
`

const list = `apiVersion: bcsnetctl/v1
items:
- addresses:
  - address: 10.0.0.3
    duplicates:
    - "02:00:00:00:00:01"
    gateway: 10.0.0.254
    gatewayAnswers: false
    pool: blue
  - address: 2001:db8::3
    duplicates: []
    pool: blue6
  apiVersion: bcsnetctl/v1
  findings: []
  kind: NodeCheck
  node: n3
  peers:
    asked: 2
    reached: 1
  pod: pod-3
  readySeconds: 60
  released: false
- addresses:
  - address: 10.0.0.4
    duplicatesNotAsked: it lacks NET_RAW
    gateway: 10.0.0.254
    gatewayAnswers: true
    pool: blue
  apiVersion: bcsnetctl/v1
  findings: []
  kind: NodeCheck
  node: n4
  peers:
    asked: 0
    reached: 0
  pod: pod-4
  readySeconds: 1
  released: true
- addresses: []
  apiVersion: bcsnetctl/v1
  findings:
  - cause: the node is not Ready
    check: node
    fix: see why
  kind: NodeCheck
  node: n5
  pod: ""
kind: NodeCheckList
summary:
  findings: 1
  nodes: 3
`

func TestPrint(t *testing.T) {
	all := checked()
	for name, test := range map[string]struct {
		output   string
		nodes    []nodecheck.Node
		findings []nodecheck.Finding
		want     string
	}{
		"table": {nodes: all, findings: nodecheck.Judge(all), want: tables},
		"wide":  {output: "wide", nodes: all, want: wide},
		"yaml":  {output: "yaml", nodes: all[2:], findings: []nodecheck.Finding{*all[4].Failure}, want: list},
		"paths": {output: "jsonpath={.items[*].node}", nodes: all, want: "n1 n2 n3 n4 n5"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			v := &nodesVerb{App: &app.App{Name: "kubectl bcsnet", IOStreams: genericiooptions.IOStreams{Out: &out}}}
			cmd := &cobra.Command{}
			v.output.AddToViews(cmd)
			if err := cmd.Flags().Set("output", test.output); err != nil {
				t.Fatal(err)
			}
			if err := v.output.Validate(); err != nil {
				t.Fatal(err)
			}
			if err := v.print(test.nodes, test.findings); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, out.String()); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// TestByFix: what many nodes have in common has its next step once.
func TestByFix(t *testing.T) {
	f := func(node, fix string) nodecheck.Finding { return nodecheck.Finding{Node: node, Fix: fix} }
	got := byFix([]nodecheck.Finding{f("n1", "a"), f("n1", "b"), f("n2", "a"), f("n3", "b")})
	want := [][]nodecheck.Finding{{f("n1", "a"), f("n2", "a")}, {f("n1", "b"), f("n3", "b")}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
