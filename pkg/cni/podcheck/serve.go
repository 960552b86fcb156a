package podcheck

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/bcsnet/bcsnet/pkg/nodecheck"
	"github.com/bcsnet/bcsnet/pkg/serving/port"
)

// Serve answers everybody who asks by HTTP with a name, until the context ends.
func Serve(ctx context.Context, at netip.AddrPort, name string) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", at.String())
	if err == nil {
		err = port.Serve(ctx, listener, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, name)
		}), slog.New(slog.DiscardHandler))
	}
	if err != nil {
		return fmt.Errorf("answer others at %s: %w", at, err)
	}
	return nil
}

const (
	// tryTime is how long one peer may take to answer once, and tries how often each of its addresses is asked: the
	// first question may be before the other pod listens, or before a switch has learnt where it is.
	tryTime = 2 * time.Second
	tries   = 4
	// pause is the time between two tries.
	pause = 500 * time.Millisecond
	// atOnce bounds the addresses that are asked at the same time.
	atOnce = 16
)

// everywhere returns where a pod answers: at all its addresses, of both families.
func everywhere() netip.AddrPort { return netip.AddrPortFrom(netip.IPv6Unspecified(), nodecheck.Port) }
