package app

import (
	"context"
	"io"
	"net/http"
	"time"
)

// timeLimit applies --request-timeout to requests of package store, which sets none because it also reads long lists
// and watches. 0 means no limit.
type timeLimit time.Duration

func (l timeLimit) wrap(next http.RoundTripper) http.RoundTripper {
	if l <= 0 {
		return next
	}
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		ctx, cancel := context.WithTimeout(r.Context(), time.Duration(l))
		resp, err := next.RoundTrip(r.WithContext(ctx))
		if err != nil {
			cancel()
			return nil, err
		}
		resp.Body = &limitedBody{ReadCloser: resp.Body, cancel: cancel}
		return resp, nil
	})
}

// limitedBody cancels the time limit of its request when it is closed.
type limitedBody struct {
	io.ReadCloser
	cancel context.CancelFunc
}

func (b *limitedBody) Close() error {
	defer b.cancel()
	return b.ReadCloser.Close()
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
