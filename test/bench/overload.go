package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

const (
	// saturating is the number of callers, each waiting for its turn, that saturate the API server: as many writes are
	// in flight.
	saturating = 128
	// excessWarmUp is how much of an excess is not counted: queues fill, and the limiter learns how long a write takes.
	excessWarmUp = 5 * time.Second
)

// overload offers more than can be stored, for a while, and looks who is answered meanwhile, and when all are. With
// another build, both run alone on the same control plane, in turn. Each load is offered twice: where all share the
// processors, and where the API server has its own, as it has on the nodes of a control plane.
func (b *bench) overload(ctx context.Context) error {
	defer func() { _, _ = apart(false) }() // what else is measured has all processors
	builds := []*controlplane.Controller{b.controller}
	names := []string{"this"}
	if b.beside != "" {
		other, err := b.cp.StartController(ctx, controlplane.ControllerOptions{Name: "beside", Binary: b.beside})
		if err != nil {
			return err
		}
		builds, names = append(builds, other), append(names, filepath.Base(b.beside))
		if err := errors.Join(other.Stop(), b.controller.Stop()); err != nil {
			return err
		}
	}
	this := b.controller
	defer func() { b.controller = this }()
	turn := 0
	for _, alone := range []bool{false, true} {
		for _, times := range b.offers {
			for j, build := range builds {
				b.controller = build
				if len(builds) > 1 {
					if err := build.Start(ctx); err != nil {
						return err
					}
				}
				switch ok, err := apart(alone); {
				case err != nil:
					return err
				case !ok && alone:
					return nil
				}
				say("%s build: %.1f times what can be stored, for %s; %s", names[j], times, b.excess, layout(alone))
				err := b.exceed(ctx, excess{build: names[j], apart: alone, times: times}, turn)
				if turn++; err != nil {
					return err
				}
				if len(builds) > 1 {
					if err := build.Stop(); err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}

// exceed measures what can be stored, offers a multiple of it, and waits until all have their address. turn
// distinguishes the pools of different turns: what was taken stays.
func (b *bench) exceed(ctx context.Context, of excess, turn int) error {
	network := fmt.Sprintf("overload-%d", turn)
	if _, err := b.networkPool(ctx, network, fmt.Sprintf("10.%d.0.0/14", 16+4*turn)); err != nil {
		return err
	}
	k := &kubelets{network: network, requester: newRequester(b.controller.URL, maxInFlight)}
	defer k.requester.close()
	var used shares
	saturated := func(of string) (float64, error) {
		s := service{b: b, kind: network + of, network: network}
		warm := cycle{timed: func(ctx context.Context, caller, n int) error { return s.first(ctx, caller, -n-1) }}
		if _, err := load(ctx, saturating, warmUp, warm); err != nil {
			return 0, err
		}
		end, err := watchProcessors()
		if err != nil {
			return 0, err
		}
		r, err := load(ctx, saturating, b.slice, cycle{timed: s.first})
		if err != nil {
			return 0, err
		}
		used, err = end()
		return r.perSecond, err
	}
	if err := atRest(ctx); err != nil {
		return err
	}
	before, err := saturated("before")
	if err != nil {
		return err
	}
	e, err := k.run(ctx, of.times*before, b.excess)
	if err != nil {
		return err
	}
	after, err := saturated("after")
	if err != nil {
		return err
	}
	e.build, e.apart, e.times, e.saturated, e.usedSaturated = of.build, of.apart, of.times, (before+after)/2, used
	b.report.excess(e)
	return nil
}

// excess is what one turn found.
type excess struct {
	build string
	// apart: the API server had processors of its own.
	apart bool
	// times of what can be stored were offered; saturated is what can be, in the mean of before and after.
	times, saturated float64
	// What came in a second, while more was offered.
	offered, answered, refused, gaveUp float64
	p99                                time.Duration
	// rest is the time from the end of the excess until the last caller had its address; left are those who had none
	// when nobody waited any more.
	rest time.Duration
	left int
	// failed are answers that should not be, of which why is the first.
	failed int
	why    error
	// used are the processors that were busy while more was offered, and usedSaturated while 128 callers took turns.
	used, usedSaturated shares
}

// shares are how many processors were busy with the controller, the API server with etcd, and the load generator.
type shares struct{ controller, store, generator float64 }

func (s shares) String() string {
	return fmt.Sprintf("%.2f / %.2f / %.2f", s.controller, s.store, s.generator)
}

// watchProcessors begins to count the processors that are busy; end returns them.
func watchProcessors() (end func() (shares, error), err error) {
	began := time.Now()
	before, err := cpu()
	return func() (s shares, err error) {
		now, err := cpu()
		for name, t := range now {
			n := (t - before[name]).Seconds() / time.Since(began).Seconds()
			switch name {
			case "bench":
				s.generator += n
			case "kube-apiserver", "etcd":
				s.store += n
			default:
				s.controller += n
			}
		}
		return s, err
	}, err
}

// layout returns a word for how the processors are divided: apart, each side has half of them.
func layout(apart bool) string {
	if apart {
		return "half"
	}
	return "shared"
}

// Times of a kubelet and its plugin: it gives up after ten seconds, which its requests do not state, and tries again
// later and later.
const (
	pluginTime   = 10 * time.Second
	firstBackoff = time.Second
	lastBackoff  = 16 * time.Second
	// maxInFlight bounds the requests of the generator. A pod whose turn comes beyond that waits.
	maxInFlight = 8192
)

// kubelets start pods: each asks for an address, with a new container at each try, deletes the container when that
// failed, and comes again.
type kubelets struct {
	network   string
	requester *requester

	mu       sync.Mutex
	due      map[time.Duration][]*sandbox // by the step of the clock
	took     []time.Duration              // of answered requests, within the time that counts
	counts   excess
	counting bool
	waiting  int // pods without an address
	last     time.Time
}

// sandbox is a pod's, and what is to be done next for it.
type sandbox struct {
	pod, try int
	// gone is the number of tries whose container was deleted.
	gone    int
	backoff time.Duration
}

// step is the precision of the generator's clock.
const step = 5 * time.Millisecond

// run starts so many pods a second for a time, and returns when all have their address, or for none of them that seems
// to come.
func (k *kubelets) run(ctx context.Context, perSecond float64, length time.Duration) (e excess, err error) {
	k.due = map[time.Duration][]*sandbox{}
	began, places := time.Now(), make(chan struct{}, maxInFlight)
	pods, at := 0, time.Duration(0)
	tick := time.NewTicker(step)
	defer tick.Stop()
	var running sync.WaitGroup
	defer running.Wait()
	var used shares
	var end func() (shares, error)
	for ctx.Err() == nil {
		<-tick.C
		passed := time.Since(began)
		switch {
		case end == nil && passed >= excessWarmUp:
			end, err = watchProcessors()
		case end != nil && used == (shares{}) && passed >= length:
			used, err = end()
		}
		if err != nil {
			return e, err
		}
		k.mu.Lock()
		for ; pods < int(perSecond*min(passed, length).Seconds()); pods++ {
			k.due[at] = append(k.due[at], &sandbox{pod: pods, backoff: firstBackoff})
			k.waiting++
		}
		k.counting = passed >= excessWarmUp && passed < length
		over := passed >= length && (k.waiting == 0 || passed > length+k.patience(length))
		var now []*sandbox
		for ; at <= passed; at += step {
			now = append(now, k.due[at]...)
			delete(k.due, at)
		}
		k.mu.Unlock()
		if over {
			break
		}
		for _, s := range now {
			places <- struct{}{}
			running.Go(func() {
				defer func() { <-places }()
				k.turn(ctx, s, began)
			})
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	counted := (length - excessWarmUp).Seconds()
	e = k.counts
	e.offered, e.used = perSecond, used
	e.answered, e.refused, e.gaveUp = float64(len(k.took))/counted, e.refused/counted, e.gaveUp/counted
	slices.Sort(k.took)
	if n := len(k.took); n > 0 {
		e.p99 = k.took[n*99/100]
	}
	e.rest, e.left = max(0, k.last.Sub(began)-length), k.waiting
	return e, ctx.Err()
}

// patience returns how long after an excess the rest may take: twice what it takes when three times as much was
// offered.
func (*kubelets) patience(length time.Duration) time.Duration { return 4*length + time.Minute }

// turn makes one try of a kubelet. It first deletes what is left of the try before.
func (k *kubelets) turn(ctx context.Context, s *sandbox, began time.Time) {
	again := func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		// Half as long, to half as much again, by a number that is each pod's own.
		wait := s.backoff/2 + s.backoff*time.Duration((s.pod*7919+s.try*104729)%1000)/1000
		at := (time.Since(began) + wait).Truncate(step) + step
		k.due[at] = append(k.due[at], s)
		s.backoff = min(2*s.backoff, lastBackoff)
	}
	if s.gone < s.try {
		if o := k.ask(ctx, http.MethodDelete, s, s.try-1); o.err != nil || o.reason != "" {
			k.note(o, false)
			again()
			return
		}
		s.gone = s.try
	}
	o := k.ask(ctx, http.MethodPost, s, s.try)
	k.note(o, true)
	if o.err == nil && o.reason == "" {
		return
	}
	s.try++
	if o := k.ask(ctx, http.MethodDelete, s, s.try-1); o.err != nil || o.reason != "" {
		k.note(o, false)
	} else {
		s.gone = s.try
	}
	again()
}

// outcome is what became of a request.
type outcome struct {
	reason ipam.Reason
	took   time.Duration
	err    error
}

// note counts an outcome.
func (k *kubelets) note(o outcome, add bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case o.err == nil && o.reason == "" && add:
		k.waiting--
		k.last = time.Now()
		if k.counting {
			k.took = append(k.took, o.took)
		}
	case o.err == nil && o.reason == "":
	case errors.Is(o.err, context.DeadlineExceeded):
		if k.counting && add {
			k.counts.gaveUp++
		}
	case slices.Contains([]ipam.Reason{ipam.ReasonOverloaded, ipam.ReasonUnavailable, ipam.ReasonOutcomeUnknown},
		o.reason):
		if k.counting && add {
			k.counts.refused++
		}
	default:
		k.counts.failed++
		k.counts.why = cmp.Or(k.counts.why, o.err, fmt.Errorf("a request of a pod heard %s", o.reason))
	}
}

// filler fills up the names of containers.
const filler = "0000000000000000000000000000000000000000000000000000000000000000"

// ask sends a request for the container of a try. The reason is empty when it is done.
func (k *kubelets) ask(ctx context.Context, method string, s *sandbox, try int) outcome {
	began := time.Now()
	owner := k.network + "-" + strconv.Itoa(s.pod)
	container := owner + "-" + strconv.Itoa(try) + "-"
	container += filler[min(len(container), len(filler)):] // an ID is 64 characters long
	body := make([]byte, 0, 256)
	body = append(body, `{"host":"`+host(s.pod)+`","containerID":"`+container+`","owner":"`+owner+`","network":"`+
		k.network+`"}`...)
	reason, err := k.requester.ask(ctx, method, body, pluginTime)
	return outcome{reason, time.Since(began), err}
}
