package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/pprof"
	"os"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/bcsnet/bcsnet/pkg/access"
	"github.com/bcsnet/bcsnet/pkg/controller/leadership"
	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// maxProfile bounds the time of one CPU profile or trace.
const maxProfile = time.Minute

// withProfiles returns a handler that serves Go's profiles below /debug/pprof/ beside other pages. A caller must send a
// token for the allocator's audience, and RBAC must allow its user to get profiles in the group of the CRDs.
func withProfiles(pages http.Handler, gate *access.Gate) http.Handler {
	const prefix = "/debug/pprof/"
	mux := http.NewServeMux()
	mux.Handle("/", pages)
	for name, profile := range map[string]http.HandlerFunc{
		"": pprof.Index, "cmdline": pprof.Cmdline, "profile": pprof.Profile, "symbol": pprof.Symbol,
		"trace": pprof.Trace,
	} {
		mux.HandleFunc("GET "+prefix+name, func(w http.ResponseWriter, r *http.Request) {
			who, err := gate.Identify(r)
			if err == nil {
				err = gate.Allow(r.Context(), who, access.Question{Verb: "get", Resource: "profiles"})
			}
			if err != nil {
				status := http.StatusForbidden
				if refusal, ok := errors.AsType[*ipam.Refusal](err); ok &&
					refusal.Reason == ipam.ReasonUnauthenticated {
					status = http.StatusUnauthorized
				}
				http.Error(w, err.Error(), status)
				return
			}
			seconds, err := strconv.ParseFloat(r.FormValue("seconds"), 64)
			if err == nil && seconds > maxProfile.Seconds() {
				http.Error(w, "seconds is more than 60", http.StatusBadRequest)
				return
			}
			// The limits of the port are meant for a page. A profile may take longer, and pprof would refuse it because
			// of the server's limit.
			_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(2 * maxProfile))
			profile(w, r.WithContext(context.WithValue(r.Context(), http.ServerContextKey, nil)))
		})
	}
	return mux
}

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
