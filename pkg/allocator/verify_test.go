package allocator

import (
	"testing"

	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/intercept"
)

// What a pod with two addresses holds is verified once: both leases are read at the same time, and the pod is read once
// if a new container takes both over.
func TestPairIsVerifiedOnce(t *testing.T) {
	four, six := dual([]string{"9-12"}, "9", "a")
	r := newReplica(t, four.pool, six.pool)
	p := newPod(t, "verified-once", four.host, r)
	request := four.of(p, "verified-once-1")
	want := r.add(request)

	r.tap.Forget()
	gate := intercept.NewGate()
	mend := r.tap.On(reads, gate.Hold)
	again := r.adding(t.Context(), request)
	controlplane.Until(t, "both leases are being read", func() bool { return r.tap.Count(reads) == 2 })
	gate.Open()
	if got := <-again; got.err != nil || len(got.addrs) != 2 || got.addrs[0] != want[0] || got.addrs[1] != want[1] {
		t.Errorf("again: %v, %v; want %v", got.addrs, got.err, want)
	}
	mend()
	r.cost("a repeated ADD", 0, 2)

	request.ContainerID = "verified-once-2"
	if got := r.add(request); len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("the next container: %v, want %v", got, want)
	}
	r.cost("the next container", 2, 1)
}

// BenchmarkRepeatedAdd is an ADD of a container that has its addresses: a read of each.
func BenchmarkRepeatedAdd(b *testing.B) {
	four, six := dual([]string{"9-12"}, "9", "a")
	r := newReplica(b, four.pool, six.pool)
	request := four.of(newPod(b, "repeated-bench", four.host, r), "repeated-bench-c")
	r.add(request)
	for b.Loop() {
		if _, err := r.Allocate(b.Context(), request); err != nil {
			b.Fatal(err)
		}
	}
}
