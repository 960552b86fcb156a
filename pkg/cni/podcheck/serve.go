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

// Serve answers every HTTP request with a name, until the context ends.
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
	// tryTime bounds one try, and tries is the number of tries for each address of a peer: at the first try, the other
	// pod may not listen yet, or a switch may not know its port.
	tryTime = 2 * time.Second
	tries   = 4
	// pause is the time between two tries.
	pause = 500 * time.Millisecond
	// atOnce bounds the number of addresses that are asked at the same time.
	atOnce = 16
)

// everywhere returns the address to listen on: all addresses of the pod, of both families.
func everywhere() netip.AddrPort { return netip.AddrPortFrom(netip.IPv6Unspecified(), nodecheck.Port) }
