package controller

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/bcsnet/bcsnet/pkg/httpapi"
)

// Options are the flags of bcsnet-controller.
type Options struct {
	Kubeconfig              string
	HTTPBindAddress         string
	MetricsBindAddress      string
	HealthProbeBindAddress  string
	LeaderElect             bool
	LeaderElectionNamespace string
	GatewaySource           string
	GarbageCollection       CollectionMode
	HostGrace               time.Duration
	LogLevel                string
	LogFormat               string
	OTLPEndpoint            string
	// CollectEvery is how often the garbage collection looks, CollectAfter how long a lease must look given up; zero
	// for what the documentation promises, which is why they are no flags.
	CollectEvery, CollectAfter time.Duration
	// LogOutput is where the log goes; nil for standard error.
	LogOutput io.Writer
}

// EnvPrefix stands before the name of a flag in the environment: BCSNET_HTTP_BIND_ADDRESS.
const EnvPrefix = "BCSNET_"

// AddFlags adds the flags with their defaults.
func (o *Options) AddFlags(f *pflag.FlagSet) {
	f.StringVar(&o.Kubeconfig, "kubeconfig", "", "path of a kubeconfig; empty for $KUBECONFIG, else the service account of the pod")
	f.StringVar(&o.HTTPBindAddress, "http-bind-address", "127.0.0.1:8090", "address of the allocator's HTTP service")
	f.StringVar(&o.MetricsBindAddress, "metrics-bind-address", "127.0.0.1:8091", "address of /metrics; 0 for none")
	f.StringVar(&o.HealthProbeBindAddress, "health-probe-bind-address", "127.0.0.1:8092", "address of /healthz and /readyz; 0 for none")
	f.BoolVar(&o.LeaderElect, "leader-elect", true, "let only one replica run the reconcilers; every replica answers requests")
	f.StringVar(&o.LeaderElectionNamespace, "leader-election-namespace", "bcsnet-system", "namespace of the Lease")
	f.StringVar(&o.GatewaySource, "gateway-source", string(httpapi.GatewayPool), `where the gateway of an answer comes from: "pool", or "host" for the request's hostGateway, else the node's annotation, else the pool's`)
	f.StringVar((*string)(&o.GarbageCollection), "garbage-collection", string(CollectionOn), `take addresses back whose pod has gone: "on", "dry-run" (the log and metrics say what would be taken back) or "off"`)
	f.DurationVar(&o.HostGrace, "host-grace", 24*time.Hour, "how long addresses of pods that have gone are kept where the host is no ready node, because their containers may still run there; 0 for ever")
	f.StringVar(&o.LogLevel, "log-level", "info", "debug, info, warn or error")
	f.StringVar(&o.LogFormat, "log-format", "text", "text or json")
	f.StringVar(&o.OTLPEndpoint, "otlp-endpoint", "", "URL of an OpenTelemetry collector (OTLP over HTTP) that gets traces of requests, such as http://127.0.0.1:4318; empty for $OTEL_EXPORTER_OTLP_ENDPOINT, else no traces")
}

// SetFromEnv sets every flag that the command line did not set and the environment does. Cobra's own
// flags, help and version, are questions and not among them.
func SetFromEnv(f *pflag.FlagSet, lookup func(string) (string, bool)) (err error) {
	f.VisitAll(func(fl *pflag.Flag) {
		name := EnvPrefix + strings.ToUpper(strings.ReplaceAll(fl.Name, "-", "_"))
		v, ok := lookup(name)
		if !ok || fl.Changed || err != nil || fl.Name == "help" || fl.Name == "version" {
			return
		}
		if e := f.Set(fl.Name, v); e != nil {
			err = fmt.Errorf("%s=%q: %w", name, v, e)
		}
	})
	return err
}

// Validate checks the values. The error is one line.
func (o *Options) Validate() error {
	for _, f := range []struct {
		flag, address string
		optional      bool
	}{
		{"http-bind-address", o.HTTPBindAddress, false},
		{"metrics-bind-address", o.MetricsBindAddress, true},
		{"health-probe-bind-address", o.HealthProbeBindAddress, true},
	} {
		if f.optional && f.address == "0" {
			continue
		}
		_, port, err := net.SplitHostPort(f.address)
		if err == nil {
			_, err = strconv.ParseUint(port, 10, 16)
		}
		if err != nil {
			return fmt.Errorf("--%s %q is not HOST:PORT", f.flag, f.address)
		}
	}
	switch httpapi.GatewaySource(o.GatewaySource) {
	case httpapi.GatewayPool, httpapi.GatewayHost:
	default:
		return fmt.Errorf("--gateway-source %q is not pool or host", o.GatewaySource)
	}
	switch o.GarbageCollection {
	case CollectionOn, CollectionDryRun, CollectionOff:
	default:
		return fmt.Errorf("--garbage-collection %q is not on, dry-run or off", o.GarbageCollection)
	}
	if o.HostGrace < 0 {
		return fmt.Errorf("--host-grace %s is negative", o.HostGrace)
	}
	if o.LeaderElect && o.LeaderElectionNamespace == "" {
		return fmt.Errorf("--leader-election-namespace is empty")
	}
	if u, err := url.Parse(o.OTLPEndpoint); o.OTLPEndpoint != "" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
		return fmt.Errorf("--otlp-endpoint %q is not an http or https URL", o.OTLPEndpoint)
	}
	if o.LogFormat != "text" && o.LogFormat != "json" {
		return fmt.Errorf("--log-format %q is not text or json", o.LogFormat)
	}
	switch strings.ToLower(o.LogLevel) {
	case "debug", "info", "warn", "error":
		return nil
	default:
		return fmt.Errorf("--log-level %q is not debug, info, warn or error", o.LogLevel)
	}
}

// Logger makes the logger that the options ask for.
func (o *Options) Logger() *slog.Logger {
	var out io.Writer = os.Stderr //nolint:forbidigo // the default of a program
	if o.LogOutput != nil {
		out = o.LogOutput
	}
	var level slog.Level
	_ = level.UnmarshalText([]byte(o.LogLevel)) // Validate has checked it
	h := &slog.HandlerOptions{Level: level}
	if o.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(out, h))
	}
	return slog.New(slog.NewTextHandler(out, h))
}
