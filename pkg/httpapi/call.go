package httpapi

import (
	"context"
	"log/slog"
	"net/http"
	"time"
)

// call is one request of an operation on its way through the middlewares. Each middleware adds data for the next ones.
// Only the goroutine of the request uses it.
type call struct {
	route route
	codec codec
	// body is the JSON that was read; nil before reading, and for operations without a body.
	body []byte
	// forwarding is the origin of the request, and its time of arrival.
	forwarding forwarding
	// attrs describe the request in the log and in traces.
	attrs requestAttrs
	began time.Time
	// end ends the span of the request.
	end func(error)
}

type callKey struct{}

// callIn returns the call of a context; nil outside of operations.
func callIn(ctx context.Context) *call {
	c, _ := ctx.Value(callKey{}).(*call)
	return c
}

func callOf(r *http.Request) *call { return callIn(r.Context()) }

// forwardingOf returns the origin of a request; the zero value for requests outside of operations.
func forwardingOf(r *http.Request) forwarding {
	if c := callOf(r); c != nil {
		return c.forwarding
	}
	return forwarding{}
}

// middleware wraps a handler: it does something for every request, or answers in the handler's place.
type middleware = func(http.Handler) http.Handler

// requestAttrs describe the subject of a request in the log and in traces: the pod or owner, the container, the host.
// An operation adds them after it has parsed its request.
type requestAttrs []slog.Attr

// isRequest reports whether a context belongs to a request.
func isRequest(ctx context.Context) bool { return callIn(ctx) != nil }

// addAttrs adds attributes to a request; empty values are left out.
func addAttrs(ctx context.Context, attrs ...slog.Attr) {
	c := callIn(ctx)
	if c == nil {
		return
	}
	for _, a := range attrs {
		if a.Value.String() != "" {
			c.attrs = append(c.attrs, a)
		}
	}
}

// addHolderAttrs adds the holder of a request. Values from the request are clipped, because they are not validated yet.
func addHolderAttrs(ctx context.Context, host, container, namespace, pod, owner string) {
	if pod != "" {
		pod = clip(namespace) + "/" + clip(pod)
	}
	addAttrs(ctx, slog.String("pod", pod), slog.String("owner", clip(owner)), slog.String("container", clip(container)),
		slog.String("host", clip(host)))
}

func requestAttrsOf(ctx context.Context) []slog.Attr {
	if c := callIn(ctx); c != nil {
		return c.attrs
	}
	return nil
}
