package podcheck

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/bcsnet/bcsnet/pkg/nodecheck"
)

// AskPeers asks each address of the peers at a port. It returns the addresses that do not answer with the peer's name.
func AskPeers(ctx context.Context, peers []nodecheck.Peer, port uint16) (lost []nodecheck.Lost) {
	var mu sync.Mutex
	var group errgroup.Group
	group.SetLimit(atOnce)
	for i, peer := range peers {
		for j, addr := range peer.Addrs {
			group.Go(func() error {
				if err := askPeer(ctx, netip.AddrPortFrom(addr, port), peer.Name); err != nil {
					mu.Lock()
					defer mu.Unlock()
					lost = append(lost, nodecheck.Lost{Peer: i, Addr: j, Why: err.Error()})
				}
				return nil
			})
		}
	}
	_ = group.Wait() // unreachable peers are the result, not an error
	slices.SortFunc(lost, func(a, b nodecheck.Lost) int { return cmp.Or(a.Peer-b.Peer, a.Addr-b.Addr) })
	return lost
}

// askPeer asks one address until it answers with the right name, a few times at most.
func askPeer(ctx context.Context, at netip.AddrPort, name string) (err error) {
	for try := range tries {
		if try > 0 {
			select {
			case <-ctx.Done():
				return err
			case <-time.After(pause):
			}
		}
		var answer string
		if answer, err = get(ctx, at); err == nil && answer == name {
			return nil
		}
		if err == nil {
			err = fmt.Errorf("somebody else answers: %.60q", answer)
		}
	}
	return err
}

// get returns the answer of an address, over a new connection.
func get(ctx context.Context, at netip.AddrPort) (string, error) {
	within, stop := context.WithTimeout(ctx, tryTime)
	defer stop()
	request, err := http.NewRequestWithContext(within, http.MethodGet, "http://"+at.String()+"/", http.NoBody)
	if err != nil {
		return "", err
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return "", inShort(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, 256))
	return string(text), inShort(err)
}

// inShort returns a short cause for a failed connection: the report has little room, and the plan already has the
// address.
func inShort(err error) error {
	var timeout net.Error
	var number syscall.Errno
	switch {
	case err == nil:
		return nil
	case errors.Is(err, os.ErrDeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return fmt.Errorf("no answer within %s", tryTime)
	case errors.As(err, &number):
		return errors.New(number.Error())
	}
	return err
}
