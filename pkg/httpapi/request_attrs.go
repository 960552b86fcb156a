package httpapi

import (
	"context"
	"log/slog"
)

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
