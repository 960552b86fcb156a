package neighbour

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Ask sends the messages, and again after each pause. It returns the claims of other machines to the addresses that
// arrive until the context ends, which is not an error. It returns early if each address was claimed.
func (c *Conn) Ask(ctx context.Context, messages []Message, addrs []netip.Addr, pauses ...time.Duration) (
	[]Claim, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	if err := c.setReadDeadline(time.Time{}); err != nil {
		return nil, err
	}
	claims := make(chan Claim)
	results := make(chan error, 3) // one of each goroutine
	var work sync.WaitGroup
	work.Go(func() { results <- c.receive(c.arp, unix.ETH_P_ARP, claims) })
	work.Go(func() { results <- c.receive(c.icmp6, unix.ETH_P_IPV6, claims) })
	work.Go(func() {
		err := c.Send(ctx, messages, pauses...)
		if ctx.Err() != nil {
			err = nil
		}
		results <- err
	})
	got := newAnswers(addrs)
	err := got.collect(ctx, claims, results)
	stop()
	err = errors.Join(err, c.setReadDeadline(time.Unix(1, 0)))
	go func() {
		work.Wait()
		close(claims)
		close(results)
	}()
	for x := range claims { // claims that came in time and were not read yet
		got.add(x)
	}
	for late := range results {
		err = errors.Join(err, late)
	}
	return got.claims, err
}

func (c *Conn) setReadDeadline(at time.Time) error {
	return errors.Join(c.arp.SetReadDeadline(at), c.icmp6.SetReadDeadline(at))
}

// answers are the distinct claims to some addresses.
type answers struct {
	claims []Claim
	// by has the MACs that claimed each requested address.
	by      map[netip.Addr]map[string]bool
	missing int
}

func newAnswers(addrs []netip.Addr) *answers {
	a := &answers{by: map[netip.Addr]map[string]bool{}}
	for _, addr := range addrs {
		a.by[addr] = map[string]bool{}
	}
	a.missing = len(a.by)
	return a
}

func (a *answers) add(c Claim) {
	by, asked := a.by[c.Addr]
	if !asked || by[string(c.MAC)] {
		return
	}
	if len(by) == 0 {
		a.missing--
	}
	by[string(c.MAC)] = true
	a.claims = append(a.claims, c)
}

// collect adds claims until each address has one, the context ends, or an error occurs.
func (a *answers) collect(ctx context.Context, claims <-chan Claim, results <-chan error) error {
	for a.missing > 0 {
		select {
		case <-ctx.Done():
			return nil
		case err := <-results:
			if err != nil {
				return err
			}
		case x := <-claims:
			a.add(x)
		}
	}
	return nil
}
