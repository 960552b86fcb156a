package httpapi

import (
	"context"
	"net/http"
	"time"
)

// call is one request of an operation on its way through the middlewares. Each of them adds what it finds out for those
// behind it. The goroutine of the request alone uses it.
type call struct {
	route route
	codec codec
	// body is the JSON that was read, nil before and for operations without one.
	body []byte
	// forwarding is where the request came from, and when.
	forwarding forwarding
	// attrs say in the log and in traces what the request is about.
	attrs requestAttrs
	began time.Time
	// end ends the span of the request.
	end func(error)
}

type callKey struct{}

// callIn returns the call of a context, nil outside of operations.
func callIn(ctx context.Context) *call {
	c, _ := ctx.Value(callKey{}).(*call)
	return c
}

func callOf(r *http.Request) *call { return callIn(r.Context()) }

// forwardingOf returns where a request came from. What is no operation's says nothing of it.
func forwardingOf(r *http.Request) forwarding {
	if c := callOf(r); c != nil {
		return c.forwarding
	}
	return forwarding{}
}

// middleware does something for all requests before a handler, or answers in its place.
type middleware = func(http.Handler) http.Handler
