//go:build linux

package node

import (
	"context"
	"os"
	"testing"

	"github.com/bcsnet/bcsnet/test/node/bed"
)

// shared is the bed of all tests here.
var shared bed.Shared

func TestMain(m *testing.M) { os.Exit(shared.Main(m, 2, setUp, hostLocal)) }

func setUp(context.Context, *bed.Bed) (func() error, error) { return func() error { return nil }, nil }

func hostLocal(n *bed.Node) error {
	return n.WriteConflist("10-net.conflist", []byte(`{"cniVersion":"1.1.0","name":"underlay","plugins":[
 {"type":"bridge","bridge":"br0","isGateway":false,"ipMasq":false,"hairpinMode":false,
  "ipam":{"type":"host-local","ranges":[[{"subnet":"192.168.77.0/24","rangeStart":"192.168.77.1`+n.Name[1:]+`0","rangeEnd":"192.168.77.1`+n.Name[1:]+`9","gateway":"192.168.77.1"}]],"routes":[{"dst":"0.0.0.0/0"}]}}]}`))
}

func TestUp(t *testing.T) {
	b := shared.For(t)
	t.Log(b.Nodes()[0].Name)
}
