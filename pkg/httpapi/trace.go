package httpapi

import (
	"context"
	"net/http"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// tracerName is the source of spans in traces.
const tracerName = "github.com/bcsnet/bcsnet"

// startSpan begins the span of a request, as a child of the span in the caller's traceparent. Without a tracer provider
// it costs nothing.
func startSpan(
	ctx context.Context, by trace.TracerProvider, r *http.Request, operation string,
) (_ context.Context, end func(error)) {
	if by == nil {
		return ctx, func(error) {}
	}
	ctx = propagation.TraceContext{}.Extract(ctx, propagation.HeaderCarrier(r.Header))
	ctx, span := by.Tracer(tracerName).Start(ctx, operation, trace.WithSpanKind(trace.SpanKindServer),
		trace.WithAttributes(
			attribute.String("bcsnet.request_id", idOf(r)), attribute.String("http.request.method", r.Method),
			attribute.String("http.route", r.Pattern)))
	return ctx, func(err error) {
		for _, a := range requestAttrsOf(ctx) {
			span.SetAttributes(attribute.String("bcsnet."+a.Key, a.Value.String()))
		}
		if err != nil {
			span.SetAttributes(attribute.String("bcsnet.reason", string(asRefusal(err).Reason)))
		}
		endSpan(span, err)
	}
}

// propagate copies the trace of a request to a forwarded one.
func propagate(from, to *http.Request) {
	if parent := from.Header.Get("traceparent"); parent != "" {
		to.Header.Set("traceparent", parent)
	}
	// our own span, if there is one
	propagation.TraceContext{}.Inject(from.Context(), propagation.HeaderCarrier(to.Header))
}

func endSpan(span trace.Span, err error) {
	if err != nil {
		span.SetStatus(codes.Error, err.Error())
	}
	span.End()
}
