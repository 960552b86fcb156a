package controller

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/bcsnet/bcsnet/pkg/controller/leadership"
)

// flushTime bounds the time for which the ending controller waits for the last spans to be delivered.
const flushTime = 2 * time.Second

// addTracing adds the component that collects the spans of requests and sends them by OTLP over HTTP; nil without an
// endpoint. The library itself reads the other OTEL_… variables: headers, certificates, the sampler.
func addTracing(ctx context.Context, mgr manager.Manager, o Options) (trace.TracerProvider, error) {
	var where []otlptracehttp.Option
	switch {
	case o.OTLPEndpoint != "":
		where = append(where, otlptracehttp.WithEndpointURL(strings.TrimRight(o.OTLPEndpoint, "/")+"/v1/traces"))
	case cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"), os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT")) == "":
		return nil, nil
	}
	exporter, err := otlptracehttp.New(ctx, where...)
	if err != nil {
		return nil, fmt.Errorf("--otlp-endpoint: %w", err)
	}
	about, err := resource.New(ctx, resource.WithAttributes(
		attribute.String("service.name", leadership.LeaseName),
		attribute.String("service.instance.id", os.Getenv("POD_NAME")),
	), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(about))
	return provider, mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		<-ctx.Done()
		limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTime)
		defer cancel()
		_ = provider.Shutdown(limit) // undelivered spans are lost
		return nil
	}))
}
