package httpapi

import (
	"context"
	"log/slog"
)

// notes say in the log and in traces what a request is about: the pod or owner, the container, the host. An
// operation notes it down when it has read its request.
type notes struct{ attrs []slog.Attr }

type notesKey struct{}

func withNotes(ctx context.Context) context.Context {
	return context.WithValue(ctx, notesKey{}, &notes{})
}

// isRequest says whether a context is that of a request.
func isRequest(ctx context.Context) bool { return ctx.Value(notesKey{}) != nil }

// note adds to the notes of a request; empty values are left out.
func note(ctx context.Context, attrs ...slog.Attr) {
	n, ok := ctx.Value(notesKey{}).(*notes)
	if !ok {
		return
	}
	for _, a := range attrs {
		if a.Value.String() != "" {
			n.attrs = append(n.attrs, a)
		}
	}
}

// noteHolder notes down who a request is for. What came from outside is clipped: it is not checked yet.
func noteHolder(ctx context.Context, host, container, namespace, pod, owner string) {
	if pod != "" {
		pod = clip(namespace) + "/" + clip(pod)
	}
	note(ctx, slog.String("pod", pod), slog.String("owner", clip(owner)), slog.String("container", clip(container)), slog.String("host", clip(host)))
}

func notesOf(ctx context.Context) []slog.Attr {
	if n, ok := ctx.Value(notesKey{}).(*notes); ok {
		return n.attrs
	}
	return nil
}
