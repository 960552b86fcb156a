package pool

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/cli/clitest"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/cli/terminal"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// TestTree: networks by name, pools of none last; hosts and addresses in the order of their numbers.
func TestTree(t *testing.T) {
	named := func(name, network string, hosts ...string) resource.Pool {
		p := &v1.BCSNetPool{Spec: v1.BCSNetPoolSpec{Net: "10.1.0.0", Mask: 24, Network: network, Hosts: hosts}}
		p.Name = name
		return resource.Pool{BCSNetPool: p}
	}
	pools := []resource.Pool{
		named("alone", ""), named("blue", "z", "10.0.0.9", "10.0.0.11", "10.0.0.11", "10.0.0.12"), named("six", "a"),
	}
	taken := []lease.Lease{
		clitest.Active("10.1.0.100", "10.0.0.11"), clitest.Active("10.1.0.20", "10.0.0.11"), clitest.Active("10.1.0.7", "10.0.0.9"),
		clitest.Reserved("10.1.0.3"),
	}
	tests := map[string]struct {
		depth int
		want  string
	}{
		"networks": {1, `a             1 pool
z             1 pool, 3 active, 1 reserved
(no network)  1 pool
`},
		"all": {0, "a             1 pool\n`-- six  10.1.0.0/24\n" + `z             1 pool, 3 active, 1 reserved
` + "`-- blue  10.1.0.0/24, 3 active, 1 reserved\n" + `    |-- (no host)  1 address
` + "    |   `-- 10.1.0.3  reserved\n" + `    |-- 10.0.0.9   1 address
` + "    |   `-- 10.1.0.7  default/web-0\n" + `    |-- 10.0.0.11  2 addresses
    |   |-- 10.1.0.20   default/web-0
` + "    |   `-- 10.1.0.100  default/web-0\n    `-- 1 host that holds nothing\n(no network)  1 pool\n`-- alone  10.1.0.0/24\n"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var trees []printer.Branch
			for _, n := range growTree(pools, nil, taken, nil) {
				trees = append(trees, n.branch())
			}
			var b bytes.Buffer
			var ascii terminal.Terminal
			printer.DrawTree(&b, trees, printer.StrokesOf(ascii), tc.depth)
			if diff := cmp.Diff(tc.want, b.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}
