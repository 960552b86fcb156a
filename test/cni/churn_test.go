package cni_test

import (
	"fmt"
	"testing"

	v1 "github.com/bcsnet/bcsnet/api/v1"
)

// TestProbeAmongPodsThatEnd has pods hand their only address on. macvlan gives it back before it removes the interface,
// which answers for a moment: that is no conflict.
func TestProbeAmongPodsThatEnd(t *testing.T) {
	n := newNode(t)
	n.lan.Attach(t, n.host, "eth0")
	n.host.Up(t, "eth0")
	n.pool("", nil, 20)
	list := conflist(t, "1.1.0", "lan", `"type":"macvlan","master":"eth0","mode":"bridge"`, `"probe":true`)
	before := n.container("w0")
	before.added(list)
	for i := range 4 {
		next := n.container(fmt.Sprint("w", i+1))
		ended := make(chan error, 1)
		go func() { ended <- before.del(list) }()
		n.eventually(func() bool {
			_, err := next.add(list)
			if l := n.lease(n.addr(20)); l.Conflict != nil || err != nil && l.Status == v1.IPReserved {
				t.Fatalf("%s is %s, with %+v", n.addr(20), l.Status, l.Conflict)
			}
			return err == nil
		})
		if err := <-ended; err != nil {
			t.Error(err)
		}
		before = next
	}
}
