package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"syscall"

	"github.com/bcsnet/bcsnet/pkg/recovery"
	"github.com/bcsnet/bcsnet/pkg/replica"
)

// AskStore asks the replica at a URL which versions of the store it has seen. seen is false if no replica there can
// have seen any: nothing listens, or the answer comes from another program or an earlier release. The error says why a
// replica that may exist did not answer.
func (f *Forwarder) AskStore(ctx context.Context, url string) (w recovery.Witness, seen bool, err error) {
	u, err := replica.ParseURL(url)
	if err != nil || u.Scheme == "http" && !replica.Loopback(u) {
		return w, false, nil // no replica of this release is called by it
	}
	out, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/info", http.NoBody)
	if err != nil {
		return w, false, err
	}
	resp, err := f.signs.RoundTrip(out)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return w, false, nil
	case err != nil:
		return w, false, fmt.Errorf("ask %s: %w", url, err)
	}
	defer resp.Body.Close()
	var info Info
	err = json.NewDecoder(io.LimitReader(resp.Body, maxReply)).Decode(&info)
	switch {
	case ctx.Err() != nil:
		return w, false, fmt.Errorf("ask %s: %w", url, err)
	case err != nil || resp.StatusCode != http.StatusOK || resp.Header.Get(headerAnsweredBy) == "" || info.Store == nil:
		return w, false, nil // another program answered
	}
	w = recovery.Witness{Version: info.Store.Version, Doubtful: info.Store.Doubtful}
	if at := info.Store.PutBack; at != nil {
		w.PutBack = *at
	}
	return w, true, nil
}
