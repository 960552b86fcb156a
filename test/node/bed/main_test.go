//go:build linux

package bed

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"
)

// holdEnv is set where the test binary plays a program that has a bed of its own, and waits for its end.
const holdEnv = "BCSNET_BED_TEST_HOLD"

// shared is the bed of the tests here.
var shared Shared

func TestMain(m *testing.M) {
	RunNode()
	if os.Getenv(holdEnv) != "" {
		playHolder()
	}
	os.Exit(shared.Main(m, Setup{Nodes: 2, Prepare: hostLocal}, func(context.Context, *Bed) (func() error, error) {
		return func() error { return nil }, nil
	}))
}

// playHolder makes a bed with a node that has no kubelet, says so, and waits.
func playHolder() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	b, err := Prepare()
	if err == nil {
		b.logs = b.dir
		n := &Node{bed: b, logs: b.dir, Config: Config{Name: "n1", Cgroup: b.name + "-n1"}}
		if err = makeCgroup(n.Cgroup); err == nil {
			err = n.spawn()
		}
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(b.name)
	<-ctx.Done()
	os.Exit(0)
}

// hostLocal gives a node a network with addresses of both families that no other node has.
func hostLocal(n *Node) error {
	return n.WriteConflist("", fmt.Appendf(nil, `{
		"cniVersion": "1.1.0", "name": "underlay", "plugins": [{
			"type": "bridge", "bridge": "br0",
			"ipam": {
				"type": "host-local",
				"ranges": [
					[{"subnet": "192.168.77.0/24", "rangeStart": "192.168.77.%[1]d0", "rangeEnd": "192.168.77.%[1]d9", "gateway": "%[2]s"}],
					[{"subnet": "fd00:77::/64", "rangeStart": "fd00:77::%[1]d0", "rangeEnd": "fd00:77::%[1]d9", "gateway": "%[3]s"}]
				],
				"routes": [{"dst": "0.0.0.0/0"}, {"dst": "::/0"}]
			}
		}]
	}`, n.Number, n.Gateway4, n.Gateway6))
}
