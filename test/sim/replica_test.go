package sim_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"

	"github.com/bcsnet/bcsnet/pkg/controller"
)

// replica is a whole controller, which ends and begins again.
type replica struct {
	world  *fixture
	number int
	name   string
	ahead  time.Duration // its clock

	mu     sync.Mutex
	life   int
	link   *link
	pipes  *pipes // nil while it is down
	cancel context.CancelFunc
	ended  sync.WaitGroup // all its lives
	log    tail
}

// leaseDuration is the time for which the leader's Lease lasts: short, so that it is lost often.
const leaseDuration = 4 * time.Second

func (r *replica) start() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.life++
	r.link = newLink(r.world, fmt.Sprintf("%s.%d", r.name, r.life))
	r.pipes = newPipes()
	var o controller.Options
	o.AddFlags(pflag.NewFlagSet("", pflag.ContinueOnError)) // sets the defaults
	o.MetricsBindAddress, o.HealthProbeBindAddress, o.AdvertiseAddress = "0", "0", "none"
	o.LeaseDuration, o.RenewDeadline, o.RetryPeriod = leaseDuration, 3*time.Second, time.Second/2
	if r.world.plan.Restores { // they ask each other, and the leader answers for all
		o.AdvertiseAddress, o.DialReplica = "http://"+r.address(), r.dial
	}
	o.LogOutput, o.Now = &r.log, func() time.Time { return time.Now().Add(r.ahead) }
	cfg := &rest.Config{Host: "http://api", Transport: r.link}
	cfg.ContentType = "application/json"
	ctx, cancel := context.WithCancel(r.world.ctx)
	r.cancel = cancel
	listener := r.pipes
	r.ended.Go(func() {
		// One that is killed loses its listener before it is told to end.
		if err := controller.Serve(ctx, cfg, listener, o); err != nil && r.listener() == listener {
			r.world.verdict.Wrong("%s ended by itself: %v", r.name, err)
		}
	})
}

// address is where others reach it.
func (r *replica) address() string { return fmt.Sprintf("127.0.0.%d:8090", 1+r.number) }

// dial reaches another replica.
func (r *replica) dial(ctx context.Context, network, address string) (net.Conn, error) {
	r.world.verdict.Count("connection between replicas")
	return r.world.dial(ctx, network, address)
}

func (r *replica) listener() *pipes {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pipes
}

// way is its link of this life.
func (r *replica) way() *link {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.link
}

// kill ends it as kill -9 does: nothing that it does from now on reaches anybody.
func (r *replica) kill() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pipes == nil {
		return
	}
	r.link.kill()
	r.pipes.cut()
	r.pipes = nil
	r.cancel()
}

// stop ends it in order.
func (r *replica) stop() {
	r.mu.Lock()
	r.cancel()
	r.mu.Unlock()
	r.ended.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pipes.cut()
	r.pipes = nil
}

// tail keeps the last lines of a log.
type tail struct {
	mu    sync.Mutex
	lines [][]byte
}

const maxTail = 2000

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines = append(t.lines, bytes.Clone(p))
	if len(t.lines) > 2*maxTail {
		t.lines = append([][]byte(nil), t.lines[maxTail:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.Join(t.lines, nil))
}
